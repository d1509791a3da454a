"""What the explorer draws over time: `picture` reads it in stages, `kept` keeps it in the user's cache, `near_states`
keeps states of it, `questions` answers from it, `live` tells of what is written and read meanwhile.

May import what adapters/web may.
"""
