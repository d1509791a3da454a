"""What `kerf doctor` checks: the API server, the rights, the AWS account, the record. Each check gives a `Finding`."""
