"""The pure core: state, deciders and one synchronous turn; no I/O, no clock, no adapter."""
