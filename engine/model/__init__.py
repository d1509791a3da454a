"""What exists: the objects of Kubernetes and of Karpenter's API, and the values that they are made of.

Each struct has the fields that the engine looks at. `kubernetes` and `karpenter` hold the structs, `manifests` decodes
documents into them, `crds` declares kerf's own API, `kinds` declares what is watched. The lowest layer of the engine:
imports nothing else of kerf but kerf.engine.errors.
"""
