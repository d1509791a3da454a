"""What a shell offers behind a word that is begun: records, names out of a record, moments.

cyclopts generates the scripts and finds the parameter under the cursor. Nothing but the named record is opened, and
that only to read.

Imports the engine's model, projections' words and the bundle's format, and no decoder of entries: a key
press waits.
"""
