"""The model's edge: Kubernetes documents are decoded, judged and converted here, and refused with coded errors."""
