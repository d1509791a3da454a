"""A cloud whose instances are fake Nodes on a real API server (docs/rules/lifecycle.md section 8).

Imports the engine and no other adapter.
"""
