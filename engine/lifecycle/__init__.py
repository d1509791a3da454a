"""Lifecycle: one NodeClaim from its launch to the end of its instance.

Adoption, launch, registration, initialization, the size of static NodePools; `drain` is the way out.
Deciders look at one claim (or one NodePool) and answer with a `Step`: effects to ask for, events, or a reason to wait.

May import `scheduling` and the layers below it, never `disruption` or `runtime`.
"""
