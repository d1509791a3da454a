"""A cheaper plan, and one that binds whole, within an effort of steps: on top of the planner, which it only asks."""
