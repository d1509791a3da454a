"""Sets of new nodes, changed until kube-scheduler finds a node for every pod, and turned into a plan again.

May import `kube_scheduler` and the modules of the optimizer itself, but not `search`.
"""
