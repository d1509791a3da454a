"""What kerf watches in a cluster: one declaration a kind, from which everything that lists kinds is derived.

`watched` declares the kinds; `kind` says what a declaration holds. Imports only kerf.engine.model.
"""
