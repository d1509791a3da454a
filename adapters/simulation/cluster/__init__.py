"""The virtual cluster: the objects of an API server, kubelets, and what kerf sees and writes of them.

Each component notes what changed and does its work later, on the clock. Imports the engine's model and records.
"""
