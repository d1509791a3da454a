"""The edge: everything that talks to the outside, each behind a port of the engine.

An adapter imports the engine and no other adapter. The composition roots `cli` and `manager` may import everything.
"""
