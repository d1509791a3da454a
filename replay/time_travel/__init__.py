"""What there was at a position or at a time of a record, and how a record that was cut begins.

Code that answers "what was there then?" belongs here: the state in short, and the difference of two states.
Imports the engine, projections and `replay.errors`.
"""
