"""Devices of dynamic resource allocation (S-194…S-203): which devices a pod's ResourceClaims would get, and where.

`pools` says what is published, `matching` and the `cel_` modules which devices a request can have, `search` finds
devices for several claims together, `usage` keeps who has what, `allocation` ties it to the pass. May import
`matching`, `launchable.templates`, `problem` and `reasons`.
"""
