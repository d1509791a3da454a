"""Read a record again: go to any moment of it, verify it, explain it, and ask what would have been.

`time_travel` answers what there was at a position or time, `verify` decides recorded turns again, `golden` makes tests
of records, `history` says what happened to a pod, NodeClaim or move, `explain` says why, and `what_if` decides with
one thing changed. `scenarios` plans clusters that come as files. An importer of other records gets its own package.

Imports the engine and the projections. Records are read through the port `Store`; no adapter is imported.
"""
