"""Which nodes may go: candidates, budgets, methods, simulation and validation."""
