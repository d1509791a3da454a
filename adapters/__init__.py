"""The edge: everything that talks to the outside, each behind a port of the engine."""
