"""How long a record is kept: where it is to be cut, the cut itself, and cutting a record that nobody writes.

Imports the engine and the store's own modules.
"""
