"""`kerf replay`: a simulated world that begins as a record says, in which the recorded workload comes and goes; its
runs, without a change and with it; and the question that is asked of them.

Imports the simulation, `kerf.replay.modelled`, and of the CLI what runs simulations.
"""
