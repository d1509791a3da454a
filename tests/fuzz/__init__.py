"""A fuzz target for each decoder: whatever it is given, it gives a value or a coded error, in bounded time and memory.

`make fuzz MINUTES=…` runs them for so long; `make test` tries some examples of each.
"""
