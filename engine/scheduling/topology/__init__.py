"""Topology spread, pod affinity and anti-affinity: pods counted in domains, and the rules over the counts
(S-117…S-148).

`rules` says whether a domain may take a pod, `pod_counts` which nodes count, `topology` which rules bind which pods.
May import `matching`, `launchable`, `pods.pod_requirements`, `problem` and `packing.existing_node`.
"""
