"""Starting instances: the launch template, the CreateFleet request and its answer, errors, client tokens.

Imports the engine and the AWS adapter.
"""
