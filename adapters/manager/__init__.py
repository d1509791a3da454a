"""The controller's process, as controller-runtime has its manager: leader election, probes and metrics, the provider,
retention, reporting, settings, and the wiring of all of it. `kerf run` starts it. A composition root: it may import
everything but the command line.
"""
