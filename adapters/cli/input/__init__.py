"""Files that users hand to commands: Kubernetes documents in YAML or JSON, from files, folders or standard input.

Imports the model, the scenarios of replay and the offline catalogue.
"""
