"""The explorer: a page on which a record is seen (`static`), and the read-only API below it.

`questions` answers what the API asks, with the text of the commands; `reader` holds the record; `access` says who may
ask. A composition root (ADR 2): imports everything but `adapters.manager`.
"""
