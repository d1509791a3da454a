"""Clusters that come as files, in the format of the conformance suite (docs/plan.md): read, planned, disrupted.

`kerf plan`, `kerf disrupt` and the conformance tests stand on this. A scenario that cannot be read gives an error in
its own line of the results and stops no other. Imports the engine and projections.
"""
