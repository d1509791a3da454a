"""A cloud whose instances are fake Nodes on a real API server (spec/lifecycle.md section 8)."""
