"""What `kerf simulate` and `kerf demo` put together: a runtime in virtual time, a market, and the record they write.

A part of the composition root: may import everything.
"""
