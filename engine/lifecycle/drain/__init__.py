"""Drain: from the disruption taint to the deleted Node, in this order: pods, volumes, the instance, the Node.

May import `lifecycle` and the layers below it.
"""
