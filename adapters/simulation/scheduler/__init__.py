"""The virtual cluster's kube-scheduler: queue, filters, scores and binding.

It is written from Kubernetes' rules alone and shares no scheduling code with the engine. The engine has a model of
kube-scheduler, too, and plans with it; this one judges the plans, so a mistake in one does not hide in the other.
Of the engine it imports values (pods, nodes, quantities) and the reader of CEL, a language.
"""
