"""What `kerf check` and golden folders with a policy hold against it: records, and simulations of manifests.

A part of the composition root: may import everything.
"""
