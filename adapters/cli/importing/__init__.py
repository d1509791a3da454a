"""`kerf import`: the record that is made of histories, and what is said of it.

May import anything, as a part of a composition root.
"""
