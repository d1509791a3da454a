"""Drift: finding claims that differ from what their NodePool and NodeClass ask for, and replacing them.

`detection` and the checks only find and record drift; `destinations` and `static_nodepools` plan the replacements.
Detection imports nothing of the rest of `engine.disruption`; replacing uses its cluster, eligibility and budgets.
"""
