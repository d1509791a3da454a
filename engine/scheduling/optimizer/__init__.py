"""The optimizer: a cheaper plan, on whose nodes kube-scheduler binds every pod.

How `best_plan.best_plan` works:

1. The planner makes a first plan. Where topology left pods pending, it is asked again with changes (`first_plan`).
2. `effort` gives the search a budget. It is counted in work, never in time, so that a replay decides the same.
3. `lower_bound` computes a price that no set of nodes can beat; the search stops close to it.
4. `search` looks for cheaper plans: it regroups pods, plans with smaller instance types, and tries other zones.
5. Each cheaper plan is an `AlternativePlan` (`alternative_plans`). It counts only if nothing gets worse than in the
   first plan.
6. The planner plans every NodeClaim of a candidate (`partial_problems`), so that the optimizer decides no rule itself.
7. `bindability` asks the model of kube-scheduler whether it would find a node for every pod of the cheapest candidates.
8. Where it would not, `node_sets` changes the new nodes (larger, more, fewer) until it would.
9. The cheapest bindable plan wins, unless one that leaves pods over costs less with the nodes for them.
10. Where pods are told their nodes, existing nodes are left to kube-scheduler (`bound_first`).
11. Pods that use devices keep their nodes; only the others are optimized (`plans_with_devices`).

The optimizer may import the planner, the scheduling problem and `kube_scheduler`; the planner never imports it.
"""
