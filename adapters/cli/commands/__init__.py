"""One module per command; `record/` has those that read a record. A command is a function: its signature declares the
flags, its docstring is the help (lines of at most 80 columns, printed as they stand).

A help page must come at once: at its top a module imports only what its signature needs; the command imports the rest
when it runs. New commands go into kerf.adapters.cli.command_table, too.
"""
