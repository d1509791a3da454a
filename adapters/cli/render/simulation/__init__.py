"""What `kerf simulate` and `kerf demo` print: what happens while it happens, and the report at the end.

Imports projections and the rest of `adapters.cli.render`.
"""
