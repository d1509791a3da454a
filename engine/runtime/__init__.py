"""One synchronous turn: observations in, entries and intents out; and the ports that adapters implement.

`runtime` takes the turns, `react` calls the deciders until nothing more follows. The top layer of the engine: imports
all others.
"""
