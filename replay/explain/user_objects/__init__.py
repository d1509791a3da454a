"""Why an object that users write is as it is: a NodePool, a NodeClass, a PodDisruptionBudget.

Imports what `replay.explain` may, and of that its single questions alone.
"""
