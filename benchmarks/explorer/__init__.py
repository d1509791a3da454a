"""Further measurements of the explorer; the first ones are in `benchmarks/ui.py`. May import the whole of kerf."""
