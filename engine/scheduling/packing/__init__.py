"""Pods onto candidates, one after another: existing nodes, open claims, then new claims (S-85…S-116).

May import everything of scheduling but the deciders, `planner`, `optimizer` and `kube_scheduler`.
"""
