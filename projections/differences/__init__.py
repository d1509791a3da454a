"""What is different: the fields of an object that changed, and the difference of two states of one record.

`kerf diff` shows the difference of states, `kerf log` the fields of objects. Imports the engine, `projections.prose`
and `projections.workload_names`.
"""
