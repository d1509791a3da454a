"""The fold of what concerns NodeClaims: their events, answers to effects on them, adoption, drift, consistency.

Imports the state, the nodeclaim table, record and model.
"""
