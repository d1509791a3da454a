"""What `kerf check` prints: text for a terminal, and JUnit's XML for a CI server.

A part of the composition root: may import everything.
"""
