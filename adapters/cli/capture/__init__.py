"""`kerf capture`: what is listed of a live cluster, which instance types are taken for it, and the bundle.

May import anything, as a part of a composition root.
"""
