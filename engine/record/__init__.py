"""The entries of the record: envelope, types with their schema versions, codec, and the port of the store.

Observations, claim events and decisions are declared here, because records hold them. Imports the model.
"""
