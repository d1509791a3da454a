"""One module per command (`record` holds the five that read a record). A command is a function: its signature declares
the flags, its docstring is the help. It reads its input, asks replay, a simulation or the manager, and prints.

`kerf --help` imports every module of this folder: import slow modules inside the function (see kerf.adapters.cli.main).
"""
