"""What `kerf whatif` and `kerf sweep` print.

Imports replay and the rest of `adapters.cli.render`.
"""
