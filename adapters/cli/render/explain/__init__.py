"""Explanations as text: what `kerf explain` prints of a pod, a NodeClaim with its node, or a decision.

Imports the engine, `projections.prose`, `replay` and `adapters.cli.render`.
"""
