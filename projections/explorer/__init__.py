"""What the explorer draws: `lanes` of NodeClaims, `marks` on them, `curves` over time, `fills` (how full Nodes are),
`boxes` filled by pods. `troubles` are what went wrong.

`overview` folds what is drawn over time in one pass; `drawn` cuts it into tiles.

Imports the engine, `timeline`, `figures` and `workload_names`.
"""
