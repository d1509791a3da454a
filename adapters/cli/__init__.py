"""The command line: what a person types, and what is printed. A composition root: it may import everything.

`main` finds the command and turns errors into coded lines; `golden` is loaded by pytest. One module in `commands/` per
command; `render/` makes text of answers; the other rooms hold what one command needs and no other.
"""
