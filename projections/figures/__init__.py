"""Figures of a record: what nodes cost, who was evicted, how nodes came and went, which capacity was refused.

`lives` folds the life of each node, `usage` what pods ask of it. `cost`, `evictions`, `churn` and `capacity` make
measures of them, which `measures` adds up by any dimension. `loops` finds what goes round in circles.

Imports the engine and `projections.cost`.
"""
