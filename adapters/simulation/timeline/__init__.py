"""Timeline documents: what happens to the simulated world and when (docs/simulation.md), read and carried out.

A new kind of action is a struct in `timeline.py` and a function in `perform.py`.

Imports the engine and the simulation.
"""
