"""The record as files to hand on: the bundle (.kerfb), and the golden folder that people read and git compares.

Imports the engine and the store's own modules.
"""
