"""CEL (the Common Expression Language), as far as Kubernetes' device selectors and Karpenter's kubelet expressions need
it. `syntax` parses, `evaluation` gives the value. May import engine.model alone."""
