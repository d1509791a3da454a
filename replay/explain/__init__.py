"""Why a pod, node or decision is as it is: structs with coded reasons, without prose.

The prose of the codes is in `projections.prose`, tables and colours in `adapters.cli`. Imports `replay.history`,
`replay.what_if` and `replay.verify`.
"""
