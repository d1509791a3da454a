"""Forced disruption: claims that have to go whatever the budgets say. One function a method, the strongest reason wins.

May import from `engine.disruption` only what is in this package.
"""
