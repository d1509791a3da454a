"""The cluster as it is: watches, writes and the Lease, on a real API server."""
