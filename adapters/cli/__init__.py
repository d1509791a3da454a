"""The command line, a composition root: it puts engine, adapters, projections and replay together."""
