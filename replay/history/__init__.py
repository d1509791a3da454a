"""What happened to each pod, NodeClaim and move of a record: folds of its entries, and stories made of them.

What is recorded is told here; why a decider decided so is in `explain`. Imports the engine, projections and
`replay.time_travel`.
"""
