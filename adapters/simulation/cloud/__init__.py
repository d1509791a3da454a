"""The virtual cloud: what it sells at which price, its instances, and its queue of interruptions.

Implements the ports `Cloud` and `Interruptions` of `engine.runtime`.

Imports the engine and the simulation.
"""
