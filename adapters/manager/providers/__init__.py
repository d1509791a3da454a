"""Where nodes come from, one module per cloud: an adapter (kwok, aws) on a session with the API server.

A new cloud implements `provider.Provider` here and the port `Cloud` in an adapter of its own.

A part of the composition root: may import every adapter of a cloud.
"""
