"""Decide recorded turns again with today's engine, compare with what was recorded, and report each difference.

Imports the engine and projections; `golden` builds on it.
"""
