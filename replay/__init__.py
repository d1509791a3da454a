"""Time travel over a record: verify, explain, what-if, and the pytest plugin."""
