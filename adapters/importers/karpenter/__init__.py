"""Karpenter's log, JSON lines of 0.32 to 1.14 (F-55…F-94): its lines, its decisions, and the history they tell.

Imports the importers' common modules and the engine.
"""
