"""The commands that measure a record: figures by any dimension, SQL, and tables for other programs.

A module imports only what its signature needs: a help page must come at once (`kerf.adapters.cli.main`).
"""
