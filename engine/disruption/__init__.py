"""Disruption: which nodes go, when, and what replaces them.

`forced` decides about claims that have to go (expiration, deletion, interruption, node repair), `drift` about claims
that no longer match their NodePool or NodeClass, `consolidation` about empty nodes and a cheaper set of nodes. `moves`
carries out what was chosen. The modules beside them hold what these share: the cluster as disruption sees it,
candidates, budgets, costs and the simulation of a removal. `disruption_pass` puts them together.

May import `lifecycle` and the layers below it, never `runtime`.
"""
