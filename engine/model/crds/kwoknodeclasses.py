"""The schema of KWOKNodeClass (karpenter.kwok.sh/v1alpha1): L-63."""

from __future__ import annotations

from kerf.engine.model.crds.schema import object_of
from kerf.engine.model.crds.shared_fields import conditions, duration

KWOK_NODE_CLASS = object_of(
    {
        "spec": object_of(
            {"nodeRegistrationDelay": duration("How long a new node takes to appear", default="0s")},
            "How fake nodes are made",
        ),
        "status": object_of(
            {"conditions": conditions()},
            "Ready from birth: there is nothing to look up",
            default={
                "conditions": [
                    {
                        "type": "Ready",
                        "status": "True",
                        "reason": "Ready",
                        "message": "",
                        "lastTransitionTime": "2024-01-01T00:00:00Z",
                    }
                ]
            },
        ),
    },
    "How KWOK's fake nodes are made",
)
