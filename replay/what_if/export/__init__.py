"""Write a moment of a record as a scenario, which `kerf plan` and `kerf disrupt` decide (docs/plan.md).

`scenario` puts it together, `pods`, `nodes`, `volumes` and `instance_types` write its parts. Imports the engine,
`projections.status` for the conditions of NodeClaims, and `replay.what_if`.
"""
