"""Dynamic resource allocation in planning (S-194…S-203): which devices a pod's ResourceClaims would get, and where."""
