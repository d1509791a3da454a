"""How the objects of Karpenter's API are decoded: a module of the same name as in kerf.engine.model.karpenter.

Imports the model and the decoders beside it.
"""
