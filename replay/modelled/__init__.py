"""What a record's workload was, apart from what kerf did for it: taken out of the record, so that it can run again in a
model under another configuration; and how two runs of the model compare with each other and with the record.

The model itself is `kerf.adapters.simulation`. Imports the engine, the projections and `replay.what_if`.
"""
