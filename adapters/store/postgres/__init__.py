"""The record in a PostgreSQL database: the store, its recorder, and PostgreSQL's errors as the record's own.

Imports the engine and the store's own modules.
"""
