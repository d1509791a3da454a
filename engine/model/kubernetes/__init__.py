"""Objects of Kubernetes itself, as the engine sees them: one module a kind or a family of kinds.

Imports only kerf.engine.model.
"""
