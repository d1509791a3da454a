"""Objects of Karpenter's API and of its providers: NodePools, NodeClaims, NodeClasses, NodeOverlays, CapacityBuffers.

Also what is worked out from one object alone: its hash, its template, its validation, what its requirements allow.
Imports only kerf.engine.model.
"""
