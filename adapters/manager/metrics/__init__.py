"""What the controller serves over HTTP: /metrics in Prometheus's text format, /healthz and /readyz.

Imports the engine and the metrics of projections.
"""
