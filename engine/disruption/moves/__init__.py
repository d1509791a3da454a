"""Moves: what happens to a proposed disruption until its nodes are gone or it is given up.

A move is validated, waits for its disruption budget, is executed, and is rolled back when a replacement does not come.
May import `consolidation` and the modules of `engine.disruption` itself.
"""
