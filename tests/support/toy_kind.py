"""A new kind of object, declared in this file alone and taken through all of kerf.

`python -m tests.support.toy_kind FOLDER` prints as JSON what became of one object. The kind is put among the watched
ones before anything else of kerf is imported, as if it stood in kerf.engine.model.kinds.watched, and `Facts` gets the
field that keeps its objects.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
from msgspec import Struct, field

from kerf.engine.model.kinds import watched
from kerf.engine.model.kinds.kind import ServedKind, WatchedKind
from kerf.engine.model.manifests.violations import Report
from kerf.engine.model.manifests.wire import ObjectWire, Read, Wire, identity
from kerf.engine.model.names import NAME, NAMESPACED, Mark, NamespaceName
from kerf.engine.model.settings import Settings


class Toy(Struct, frozen=True, omit_defaults=True):
    namespace: NamespaceName
    name: Annotated[str, Mark(NAME, "toy")]
    size: int = 0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class ToySpecWire(Wire):
    size: int = 0


class ToyWire(ObjectWire):
    spec: ToySpecWire = field(default_factory=ToySpecWire)


def read_toy(data: bytes, report: Report) -> Read:
    wire = msgspec.json.decode(data, type=ToyWire)
    namespace, _ = identity(report, wire.metadata)
    return Read(Toy(namespace, wire.metadata.name, wire.spec.size), {})


TOY = WatchedKind(
    name="toy",
    struct=Toy,
    served=(ServedKind("example.com/v1/Toy", "toys", ToyWire, read_toy),),
    key="key",
    facts="toys",
    namespaced=True,
    planned_with=lambda settings, buffers: True,
    writes=(("status", ("patch",)),),
    announced=True,
)
ToyKey = Annotated[str, Mark(NAMESPACED, "toy")]

BALL = b"""{"apiVersion": "example.com/v1", "kind": "Toy", "spec": {"size": 3},
            "metadata": {"namespace": "playground", "name": "ball", "resourceVersion": "7"}}"""


def declare() -> None:
    """What somebody does who adds a kind."""
    watched.WATCHED = (*watched.WATCHED, TOY)
    from kerf.engine.state import state

    toys: Any = ("toys", dict[ToyKey, Toy], field(default_factory=dict))
    state.Facts = msgspec.defstruct(  # type: ignore[misc, assignment]
        "Facts", [toys], bases=(state.Facts,), omit_defaults=True, module=__name__
    )


def report(folder: Path) -> dict[str, Any]:
    """Everything else is imported here, when the kind has been declared."""
    from kerf.adapters.cli.doctor.rights import needed
    from kerf.adapters.kubernetes.watch.reflector import Reflector
    from kerf.adapters.kubernetes.watch.watched_kinds import observed
    from kerf.adapters.simulation.clock import Clock
    from kerf.adapters.simulation.cluster.apiserver import ApiServer
    from kerf.adapters.store.files.bundle import BundleStore, export_bundle
    from kerf.adapters.store.sqlite.store import SQLiteStore
    from kerf.engine.record.observations import ObjectGone, Observation
    from kerf.engine.runtime.runtime import Runtime
    from kerf.engine.state.load import load
    from kerf.projections.timeline.timeline import Timeline

    told: dict[str, Any] = {}
    (resource,) = [observation for observation in observed(Settings()) if observation.kind == "toy"]
    told["listed"] = resource.path

    seen: list[Observation] = []
    reflector = Reflector(cast("Any", None), resource, seen.extend)
    reflector.take(b'{"type": "ADDED", "object": ' + BALL.replace(b"\n", b"") + b"}")
    told["watched"] = [msgspec.to_builtins(found.payload) for found in seen]

    store = SQLiteStore(folder / "toys.kerf", "create")
    runtime = Runtime(store, holder="me", settings=Settings(), record="toys", engine="test", now=1_000)
    runtime.turn(seen, 2_000)
    told["folded"] = msgspec.to_builtins(cast("Any", runtime.state.facts).toys)
    told["planned anew"] = runtime.state.facts.moves_changed
    (entry,) = [found for found in store.scan() if type(found.payload) is Toy]
    told["recorded"] = [entry.type, entry.stream, msgspec.to_builtins(entry.payload)]
    told["told"] = [[event.subject, event.level] for event in Timeline().apply(entry)]
    told["loaded"] = msgspec.to_builtins(cast("Any", load(store).facts).toys)

    runtime.turn([Observation(ObjectGone("toy", "playground/ball"))], 3_000)
    told["gone"] = msgspec.to_builtins(cast("Any", runtime.state.facts).toys)

    export_bundle(store, folder / "toys.kerfb", pseudonymise=True, key=b"key")
    bundle = BundleStore(folder / "toys.kerfb")
    told["pseudonymised"] = [
        msgspec.to_builtins(found.payload) for found in bundle.scan() if type(found.payload) in (Toy, ObjectGone)
    ]

    rights = needed("control", "kwok", lease_namespace="kerf", lease_name="lease")
    told["rights"] = [str(right) for right in rights if right.group == "example.com"]

    api = ApiServer(Clock(0))
    api.put(seen[0].payload)
    api.remove(seen[0].payload)
    told["simulated"] = [type(change.payload).__name__ for change in api.drain()]
    return told


if __name__ == "__main__":
    declare()
    print(json.dumps(report(Path(sys.argv[1]))))
