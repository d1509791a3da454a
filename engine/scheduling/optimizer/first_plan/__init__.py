"""The first plan of an optimization: the planner's own, or a better one where topology rules left pods pending.

May import the planner, `kube_scheduler` and `pods_by_label`; nothing else of the optimizer.
"""
