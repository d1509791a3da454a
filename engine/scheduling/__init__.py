"""From pods that wait to the nodes that they need: one provisioning pass.

The story in folders: `problem` asks the question, `pods` compiles what pods ask, `launchable` what NodePools can
launch; `planner` has `packing` find a place for each pod by the rules of `topology` and `devices`; `improvement`
looks for a cheaper plan. `explain` says why. `matching` holds the small rules that all of these share. `provision` is
the decider, `plan` its answer.

May import `state`, `nodeclaim`, `record` and `model`; never `disruption`, `lifecycle` or `runtime`.
"""
