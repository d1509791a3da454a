"""What `kerf doctor` checks: the API server, the rights, the AWS account, the record. Each check gives a `Finding`.

A part of the composition root: may import the adapters that it looks at, and no command.
"""
