"""Where the record is kept: recorders and bundles."""
