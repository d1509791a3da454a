"""Why: refusals, funnels of instance types and near misses. They are worked out after the fact and change no result.

The search calls a `Tracer`; `funnel_tracer` is the one that keeps everything. `refusals` makes reasons and funnels from
`type_filters`, `near_misses` the single changes that would help. May import everything of scheduling but the deciders,
`planner`, `optimizer` and `kube_scheduler`.
"""
