"""What the API server and the controllers refuse of an object beyond its schema, as `kerf validate` tells it."""
