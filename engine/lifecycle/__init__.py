"""Registration, initialization, liveness, expiration, repair and the order of draining."""
