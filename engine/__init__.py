"""The pure core: state, deciders and one synchronous turn; no I/O, no clock, no adapter.

Its layers are packages: each imports only those below it (`layers` in pyproject.toml). Imports nothing of the other
houses.
"""
