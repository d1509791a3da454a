"""Kubernetes documents put into the simulated world, as `kubectl apply` would.

Imports `engine.model.manifests`, which decodes and judges them.
"""
