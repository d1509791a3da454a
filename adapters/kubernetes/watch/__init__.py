"""Reads from the API server: which kinds are listed and watched, and how their bytes become observations."""
