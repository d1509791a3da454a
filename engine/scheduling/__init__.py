"""From pods that wait to the nodes that they need: one provisioning pass.

The folders follow the pass:

* `problem` asks the question; `pods` compiles what pods ask for, `launchable` what NodePools can launch.
* `planner` answers it: `packing` finds a place for each pod, by the rules of `topology` and `devices`.
* `optimizer` looks for a cheaper plan, and asks `kube_scheduler`, a model of the scheduler, whether its pods are bound.
* `explain` says why; `reasons` has the codes. `matching` holds the small rules that all of these share.
* `provision` is the decider, `plan` its answer. `claims_without_pods` and `relaunch_delay` are its special cases.

May import `state`, `nodeclaim`, `record` and `model`; never `disruption`, `lifecycle` or `runtime`.
"""
