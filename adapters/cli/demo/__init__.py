"""What `kerf demo` shows: its world (a simulated cluster on a mock of AWS) and its story, chapter by chapter.

A part of the composition root: may import everything.
"""
