"""Pseudonymised copies of a record: what each field holds, and how names are replaced so that replay still works.

Imports the engine and the store's own modules.
"""
