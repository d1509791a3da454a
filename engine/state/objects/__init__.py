"""The fold of watched objects: what a pod, a Node, a NodePool, a volume, … that changes or goes does to the state.

Imports the state, the nodeclaim table, record and model.
"""
