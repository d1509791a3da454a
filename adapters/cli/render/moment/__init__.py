"""The state at a moment as text, and the difference of two.

Imports the engine, projections, replay and `render`.
"""
