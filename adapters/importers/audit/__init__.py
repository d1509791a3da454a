"""The API server's audit log (F-110…F-145): its events, the objects that follow from them, and who asked for what.

Imports the importers' common modules and the engine.
"""
