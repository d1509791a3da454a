"""What kerf writes on its own objects: conditions and counts of NodeClaims, NodePools and optional kinds.

Computed from the state. Whoever writes a status compares it with what is there first. Imports the engine and
`projections.prose`.
"""
