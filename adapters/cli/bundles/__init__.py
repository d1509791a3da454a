"""What `kerf bundle` does beside `adapters.store.files`: exports, their pseudonyms and signatures.

Imports the stores and `adapters.cli.render`.
"""
