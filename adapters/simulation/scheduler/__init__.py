"""The virtual cluster's kube-scheduler: queue, filters, scores and binding.

It is written from Kubernetes' rules alone and shares no filter, score or queue with the engine. The engine plans with a
model of kube-scheduler of its own. This one judges the plans, so a mistake in one does not hide in the other.

Of the engine it imports values (pods, nodes, quantities), the reader of CEL, which is a language, and the default
spread constraints that a scheduler's configuration gives to pods (S-150).
"""
