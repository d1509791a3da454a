"""Writes to the API server: Nodes, pods, and the NodeClaim, NodePool and NodeClass objects that users look at.

Imports the engine and the session of this adapter.
"""
