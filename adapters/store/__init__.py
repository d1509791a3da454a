"""Where a record is kept: `sqlite` and `postgres` for the controller, `files` to hand on; `retention` and `pseudonyms`.

`chained` is what the databases have in common, `open` finds out what a path or URL holds. Imports the engine only.
"""
