"""What an on-call person asks first of a cluster: which pods wait and why, what the nodes do, what is under way, and
whether that is all right.

`cluster_status` makes one value of a state. It is what `kerf status --json` prints; nothing here is text for people but
the words of reasons. Imports the engine, `projections.prose` and `projections.status`.
"""
