"""A model of kube-scheduler: which node the cluster's scheduler binds each pod to.

The optimizer and disruption ask it whether the pods of a plan find a node once the nodes are there. It follows the
scheduler's own steps: a queue of pods (`scheduler`), filters and scores (`equivalence_classes`, `node_usage`,
`interpod_counts`), one pod bound after another (`scheduling_run`). What nobody can know of a real scheduler, such as
its order among equals, is a `scheduler_variants.SchedulerVariant`.

It may import the scheduling problem, plans, and the matching of requirements, taints and selectors in
`engine.scheduling`, but neither the planner nor the optimizer. The simulated cluster (`adapters.simulation`) has a
model of its own, so that each checks the other.
"""
