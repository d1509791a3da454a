"""Files that users hand to commands: Kubernetes documents in YAML or JSON, from files, folders or standard input."""
