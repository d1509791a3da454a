"""The explorer and a cluster: `in_cluster` serves beside the controller, `forwarding` leads there from a laptop.

A part of the composition root `adapters.web` (ADR 2): imports everything but `adapters.manager`.
"""
