"""What `kerf demo` shows: its world (a simulated cluster on a mock of AWS) and its story, chapter by chapter."""
