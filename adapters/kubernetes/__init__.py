"""A real API server: the connection, the Lease and Events here; `watch` reads, `objects` writes.

Imports the engine only.
"""
