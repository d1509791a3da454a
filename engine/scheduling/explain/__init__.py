"""Why: refusals, funnels of instance types and near misses, worked out after the fact. Results never depend on it.

`tracer` is what the search calls, `funnel_tracer` keeps what it is told. May import everything of scheduling but the
deciders, `planner` and `improvement`.
"""
