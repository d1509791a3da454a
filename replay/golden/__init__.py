"""Golden records: the pytest plugin that verifies them, and how `--golden-update` makes them anew.

The plugin is loaded wherever kerf is installed beside pytest, so it imports the engine only when it finds a golden
record. Reading and writing the folder is given to it by `adapters.cli.golden`. Imports `replay.verify`.
"""
