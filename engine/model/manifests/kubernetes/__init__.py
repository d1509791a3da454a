"""How the objects of Kubernetes itself are decoded: a module of the same name as in kerf.engine.model.kubernetes.

`*_wire` modules hold the JSON form where it is large.

Imports the model and the decoders beside it.
"""
