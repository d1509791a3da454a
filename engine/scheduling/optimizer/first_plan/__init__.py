"""The first plan of an optimization: the planner's own, or a better one where topology rules left pods pending.

May import the planner and `kube_scheduler`; nothing else of the optimizer.
"""
