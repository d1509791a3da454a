"""Kubernetes Events as Karpenter writes them: which object, which reason, which text, how often.

Their texts are fixed by docs/rules/lifecycle.md. Imports the engine, `projections.prose` and `projections.status`.
"""
