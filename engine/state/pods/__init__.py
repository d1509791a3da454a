"""Pods as the state has them in many places: bursts of them, their nominations, their sums by node.

Imports the state, record and model.
"""
