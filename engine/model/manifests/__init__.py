"""The model's edge: Kubernetes documents are decoded, checked and converted here, and refused with coded errors.

`decode` is the way in. `kubernetes` and `karpenter` read the objects of one kind each; `repair` and `violations` tell
everything that is wrong with a document; `validate` says what the API server and the controllers would refuse, by the
`rules`.

Nothing above sees a raw document. Imports the model alone.
"""
