"""Reads from the API server: which kinds are listed and watched, and how their bytes become observations.

Imports the engine and the session of this adapter.
"""
