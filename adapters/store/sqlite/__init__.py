"""The record in one SQLite file: the store, its recorder, and SQLite's errors as the record's own.

Imports the engine and the store's own modules.
"""
