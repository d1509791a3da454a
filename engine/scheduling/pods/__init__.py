"""What pods ask of a place: requirements, relaxation, volumes, validation, and the pod classes compiled from these.

Also which pods can be evicted and rescheduled at all. May import `matching`, `launchable`, `topology` and `devices`.
"""
