"""Decide again with something changed, and see what comes of it.

Imports the engine alone: a change is made to the engine's own values (a `Cluster`, a `Problem`), never to a record.
"""
