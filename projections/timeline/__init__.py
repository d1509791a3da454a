"""The timeline: what happened, as coded events with a sentence each, one entry of the record at a time.

`kerf log`, `kerf simulate` and the stories of `replay.history` show these events. Each group of entries
has a module that makes events of it; `timeline.py` keeps what is needed to tell a change from a repetition.
Imports the engine and `projections.prose`.
"""
