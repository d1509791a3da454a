"""The command line: what a person types, and what is printed. A composition root: it may import everything.

`main` finds the command and turns errors into coded lines; `golden` is loaded by pytest. `commands/` has one module per
command, `input/` reads users' files, `render/` makes text of answers; `demo/`, `doctor/` and `simulate/` hold what one
command needs and no other.
"""
