"""Decide again with something changed, and see what comes of it.

A change is made to the engine's own values (a `Cluster`, a `Problem`), never to a record. Imports the engine, and the
codes of `projections.prose`.
"""
