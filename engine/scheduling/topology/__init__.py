"""Topology spread, pod affinity and anti-affinity: domains, counts and the rules over them (S-117…S-148)."""
