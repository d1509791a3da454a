"""The entries of the record: envelope, types, schema versions and upcasters."""
