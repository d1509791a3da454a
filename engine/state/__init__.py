"""The fold of the record into the state, and the indexes of the state."""
