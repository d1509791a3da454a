"""AWS in this process: moto with a shim for what it lacks, and faults on demand. For `kerf demo` and tests only.

Needs the extra `demo`. Nothing outside this package and its users may import moto.
"""
