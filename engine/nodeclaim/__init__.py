"""The NodeClaim aggregate: its states and events, how each event changes it, and why a claim can be disrupted.

May import `record` and `model`. The only package that uses `eventsourcing` and `transitions`.
"""
