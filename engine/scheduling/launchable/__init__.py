"""What can be launched: compiled catalogues, NodePool templates, NodeOverlays, what is left of reservations, daemon
overhead, and the offers of one launch.

May import `matching` and `problem.problem`.
"""
