"""What happened to each pod, NodeClaim and move of a record: folds of its entries, and stories made of them.

What is recorded is said here; why a decider decided so is in `explain`. Imports the engine, projections,
`replay.time_travel` and `replay.what_if`.
"""
