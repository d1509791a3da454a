"""Policies over records: assertions that users write down once, and that CI holds every record against.

`reading` makes assertions of a document, `forms` reads their values. `evidence` folds a record once for all of them.
`pods`, `nodes`, `spending` and `rules` have the assertions, `check` lists them and holds a record against a policy.

Imports the engine, projections, `replay.verify` and `replay.time_travel`.
"""
