"""Whether one thing suits another: requirements on labels, label selectors, taints and tolerations, host ports, amounts
of resources. The one implementation of each in the engine.

May import `model` only.
"""
