"""A small hand-made world for tests of the runtime: one NodePool, the workshop's types, a scripted cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kerf.engine.model import labels as lbl
from kerf.engine.model.content_digest import content
from kerf.engine.model.instance_types import Catalogue, InstanceType, Offering
from kerf.engine.model.karpenter.nodepools import NodeClassRef, NodePool, RequirementSpec
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pods import Pod, PodShape, Taint
from kerf.engine.model.settings import Settings
from kerf.engine.record.decisions import Intent, LaunchInstance
from kerf.engine.record.observations import (
    CatalogueSeen,
    EffectAnswered,
    InstanceSeen,
    LaunchAnswered,
    NodeClassSeen,
    ObjectGone,
    Observation,
)
from kerf.engine.runtime.runtime import Runtime
from tests.support.memory import MemoryStore

NODE_CLASS = NodeClassRef("karpenter.k8s.aws", "EC2NodeClass", "default")
START = 1_700_000_000_000
Mi = 2**20


def instance_type(name: str, cpu: int, memory: int, price: float, pods: int = 29) -> InstanceType:
    zones = ("us-west-2a", "us-west-2b")
    return InstanceType(
        name=name,
        capacity={"cpu": cpu * 1000, "memory": memory * Mi, "pods": pods},
        overhead={"cpu": 70, "memory": 674 * Mi},
        requirements={
            lbl.INSTANCE_TYPE: (name,),
            lbl.ARCH: ("amd64",),
            lbl.OS: ("linux",),
            lbl.ZONE: zones,
            lbl.CAPACITY_TYPE: ("on-demand", "spot"),
        },
        offerings=tuple(
            Offering(zone, kind, price * (0.4 if kind == "spot" else 1.0))
            for zone in zones
            for kind in ("on-demand", "spot")
        ),
    )


NOTHING: Mapping[str, int] = {}
CATALOGUE = Catalogue(
    (
        instance_type("c5.large", 2, 3788, 0.085),
        instance_type("m5.large", 2, 7577, 0.096),
        instance_type("r5.large", 2, 15155, 0.126),
        instance_type("m5.xlarge", 4, 15155, 0.192, 58),
    ),
    source="test",
)


def pool(name: str = "default", capacity_type: str = "on-demand", **changes: object) -> NodePool:
    requirements = (RequirementSpec(lbl.CAPACITY_TYPE, "In", (capacity_type,)),)
    return NodePool(name, NODE_CLASS, requirements=requirements, **changes)  # type: ignore[arg-type]


class World:
    """Drives a Runtime by hand: `now` moves only by `after`."""

    def __init__(self, store: MemoryStore | None = None, **settings: object) -> None:
        self.store = store if store is not None else MemoryStore()
        self.now = START
        self.settings = Settings(**settings)  # type: ignore[arg-type]
        self.runtime = self.start()
        self.intents: list[tuple[str, Intent]] = []
        self.pods: dict[str, Pod] = {}

    def start(self) -> Runtime:
        return Runtime(
            self.store, holder="test", settings=self.settings, record="record-1", engine="test", now=self.now
        )

    def see(self, *observations: Observation) -> list[Intent]:
        self.intents = self.runtime.turn(observations, self.now)
        return [intent for _, intent in self.intents]

    def after(self, milliseconds: int) -> list[Intent]:
        self.now += milliseconds
        return self.see()

    def prepare(self, node_pool: NodePool | None = None, catalogue: Catalogue = CATALOGUE) -> list[Intent]:
        digest, _ = content(catalogue)
        key = f"{NODE_CLASS.group}/{NODE_CLASS.kind}/{NODE_CLASS.name}"
        return self.see(
            Observation(NodeClassSeen(NODE_CLASS.group, NODE_CLASS.kind, NODE_CLASS.name, ready=True)),
            Observation(CatalogueSeen(key, digest), {digest: catalogue}),
            Observation(node_pool if node_pool is not None else pool()),
        )

    def pending(
        self, *names: str, memory: int = 1024 * Mi, cpu: int = 0, more: Mapping[str, int] = NOTHING, **shape: Any
    ) -> list[Intent]:
        """Pods that wait and ask for this, and for `more` resources."""
        requests = {"memory": memory} | ({"cpu": cpu} if cpu else {}) | dict(more)
        made = PodShape(requests=requests, grace=0, **shape)
        digest, _ = content(made)
        seen = []
        for name in names:
            pod = Pod(f"uid-{name}", "default", name, digest, created=self.now, unschedulable=True)
            self.pods[name] = pod
            seen.append(Observation(pod, {digest: made}))
        return self.see(*seen)

    def bind(self, name: str, node: str) -> list[Intent]:
        old = self.pods[name]
        self.pods[name] = Pod(
            old.uid, old.namespace, name, old.shape, created=old.created, node=node, phase="Running", ready=True
        )
        return self.see(Observation(self.pods[name]))

    def gone(self, name: str) -> list[Intent]:
        return self.see(Observation(ObjectGone("pod", self.pods.pop(name).uid)))

    def launches(self) -> list[tuple[str, LaunchInstance]]:
        return [(ref, intent) for ref, intent in self.intents if isinstance(intent, LaunchInstance)]

    def answer_launch(self, ref: str, order: LaunchInstance, instance: str = "i-1", zone_id: str = "") -> list[Intent]:
        offer = order.offers[0]
        return self.see(
            Observation(
                LaunchAnswered(
                    intent=ref, claim=order.claim, instance=instance, provider_id=f"aws:///{offer.zone}/{instance}",
                    instance_type=offer.instance_type, zone=offer.zone, capacity_type=order.capacity_type,
                    launched=self.now, zone_id=zone_id,
                )
            )
        )  # fmt: skip

    def answer_all(self, *, ok: bool = True, code: str = "200") -> list[Intent]:
        return self.see(*(Observation(EffectAnswered(ref, ok, code)) for ref, _ in self.intents))

    def node(self, name: str, provider_id: str, *, ready: bool = True, taints: tuple[Taint, ...] = (),
             **labels: str) -> list[Intent]:  # fmt: skip
        keys = {"registered": lbl.REGISTERED, "initialized": lbl.INITIALIZED}
        owners = (claim for claim in self.runtime.state.facts.claims.values() if claim.provider_id == provider_id)
        mine = {lbl.EC2NODECLASS: "default", lbl.NODEPOOL: "default"}
        synced = next((claim.labels for claim in owners), {})
        return self.see(
            Observation(
                Node(
                    name, provider_id=provider_id, created=self.now, ready=ready, taints=taints,
                    labels={**mine, **synced, **{keys[k]: v for k, v in labels.items()}},
                    allocatable={"cpu": 1930, "memory": 6903 * Mi, "pods": 29},
                )
            )
        )  # fmt: skip

    def instance(self, name: str, status: str) -> list[Intent]:
        return self.see(Observation(InstanceSeen(name, status)))
