"""Whether one thing suits another: label selectors, taints and tolerations, host ports, amounts of
resources. The one implementation of each in the engine.

May import `model` only.
"""
