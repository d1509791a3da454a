"""The search for cheaper candidates: regroup the pods, leave out large instance types, try other domains.

May import the modules of the optimizer itself and `node_sets`.
"""
