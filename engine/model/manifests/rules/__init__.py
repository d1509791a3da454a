"""What the API server and the controllers refuse of an object beyond its schema, mostly as tables of fields and checks.

`workloads` is the way in for Kubernetes' own kinds, `controllers` holds what only a controller refuses of kerf's.

Imports the model, and of the folder above what collects violations and the wire forms.
"""
