"""One synchronous turn from observations to entries and intents, and the ports that adapters implement."""
