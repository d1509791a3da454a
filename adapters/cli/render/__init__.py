"""Answers as text for people and as JSON for programs. Renders what replay and projections say; decides nothing.

Imports the engine, projections, replay and the command line's own modules.
"""
