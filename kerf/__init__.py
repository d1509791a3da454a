"""kerf: an event-sourced Kubernetes node autoscaler."""

__version__ = "0.1.0"

__all__ = ["__version__"]
