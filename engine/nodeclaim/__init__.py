"""The NodeClaim aggregate: its events and its state table."""
