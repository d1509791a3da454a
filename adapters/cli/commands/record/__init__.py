"""Commands that read a record. RECORD is a .kerf file, the URL of a record in PostgreSQL, a .kerfb bundle or a golden
folder. As in `commands/`, slow modules are imported inside the functions.
"""
