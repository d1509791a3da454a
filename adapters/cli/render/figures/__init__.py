"""Figures as tables, JSON and CSV, and loops as text: what `kerf cost`, `evictions`, `churn` and `capacity` print.

Imports `projections` and `adapters.cli.render`.
"""
