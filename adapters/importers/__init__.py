"""Histories that other programs have written, read into observations: what an adapter of kerf's would have recorded.

Each format has a module or a folder. `recognise` tells them apart, `history` is what they give, and `claim_lives` makes
NodeClaims of steps that a log or a table tells of. Imports the engine alone; `kerf import` makes a record of it.
"""
