"""What is printed of records as files: of bundles, and of what a cut removes.

Imports the stores and the rest of `adapters.cli.render`.
"""
