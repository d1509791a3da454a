"""Consolidation: which empty or underutilized nodes to remove or replace so that the cluster costs less.

`karpenter_methods` decides as Karpenter does; `sequential_search` and `joint_search` are kerf's own search for a set of
commands. May import the modules of `engine.disruption` itself, but not `moves` or `drift`.
"""
