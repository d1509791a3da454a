"""Read conformance scenarios, plan them, and write results in the form of the reference's (docs/plan.md, sections 1 and
2).

`kerf plan` and the conformance tests use this. A scenario that cannot be read gives a result with `result.error`, which
begins with the error's code, and does not stop the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from kerf.engine.errors import KerfError
from kerf.engine.model.content_digest import content
from kerf.engine.model.durations import parse_time
from kerf.engine.model.instance_types import Catalogue
from kerf.engine.model.karpenter.nodeclaim_objects import NodeClaimObject
from kerf.engine.model.karpenter.nodepools import NodePool
from kerf.engine.model.kubernetes.daemonsets import DaemonSet
from kerf.engine.model.kubernetes.devices import (
    DeviceClass,
    DeviceFacts,
    ResourceClaim,
    ResourceSlice,
    made_from_templates,
)
from kerf.engine.model.kubernetes.namespaces import Namespace
from kerf.engine.model.kubernetes.nodes import Node
from kerf.engine.model.kubernetes.pod_disruption_budgets import PodDisruptionBudget
from kerf.engine.model.kubernetes.pods import DAEMONSET, Pod, PodShape, is_provisionable, is_terminal
from kerf.engine.model.kubernetes.volumes import CSINode, StorageClass, Volume, VolumeClaim, VolumeFacts
from kerf.engine.model.manifests.decode import decode_object
from kerf.engine.model.settings import Settings
from kerf.engine.record.errors import UNDECODABLE
from kerf.engine.scheduling.explain.funnel_tracer import FunnelTracer
from kerf.engine.scheduling.matching.label_selectors import METADATA_NAME
from kerf.engine.scheduling.optimizer.best_plan import best_plan
from kerf.engine.scheduling.problem.effective_zones import effective_zones
from kerf.engine.scheduling.problem.problem import BoundPod, PendingPod, PoolInput, Problem
from kerf.engine.state.objects.daemonsets import like_newest
from kerf.replay.scenarios.catalogues import BuiltIn, Catalogues
from kerf.replay.scenarios.checks import check_scenario
from kerf.replay.scenarios.errors import ScenarioError
from kerf.replay.scenarios.forms import HINT
from kerf.replay.scenarios.json_errors import explain_json_error
from kerf.replay.scenarios.nodes import StateNode, usage
from kerf.replay.scenarios.optional_features import OptionalFeatures, read_optional_features
from kerf.replay.scenarios.plan_results import failed, result_of
from kerf.replay.scenarios.pods import reschedulable, with_defaults, with_requests
from kerf.replay.scenarios.typos import typo_notes

DEFAULT = "default"
DEFAULTS = Settings()
EFFORT, MAX_STEPS = DEFAULTS.effort, DEFAULTS.max_steps
NO_SOURCE: dict[str, Any] = {}


def read_scenarios(path: Path) -> Iterator[dict[str, Any]]:
    """Read the scenarios of a file: one JSON object per line, or one JSON document with an object or a list of them.

    Empty lines are skipped. A file in which no line is an object by itself is taken for one broken document. What is no
    JSON object becomes a scenario that holds only its `error`, so that `plan_scenario` gives it a result too. Raises
    OSError if the file cannot be read.
    """
    with path.open("rb") as lines:
        first = next((line for line in lines if line.strip()), b"")
    if _is_json(first):
        return _lines(path)
    data = path.read_bytes()
    if _is_json(data):
        return _document(data, path.name)
    return _lines(path) if not data.strip() or _has_lines(data) else iter([_refused(*explain_json_error(data, path))])


def _has_lines(data: bytes) -> bool:
    """Whether some line is an object by itself, which lines within a document are not."""
    return any(line.startswith(b"{") and len(line) > len(b"{}") and _is_json(line) for line in data.splitlines())


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except UNDECODABLE:
        return False
    return True


def _document(data: bytes, name: str) -> Iterator[dict[str, Any]]:
    document = msgspec.json.decode(data)
    for number, item in enumerate(document if isinstance(document, list) else [document]):
        yield item if isinstance(item, dict) else _refused("no JSON object", f"{name}[{number}]")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _line(line, f"{path.name}:{number}")


def _line(line: bytes, where: str) -> dict[str, Any]:
    try:
        scenario = msgspec.json.decode(line)
    except UNDECODABLE as error:
        return _refused(f"the line is not JSON: {error}", where)
    return scenario if isinstance(scenario, dict) else _refused("the line is no JSON object", where)


def _refused(message: str, where: str, hint: str = HINT) -> dict[str, Any]:
    return {"name": where, "error": str(ScenarioError(message, where=where, hint=hint))}


def read_catalogues(path: Path, built_in: BuiltIn | None = None) -> Catalogues:
    """Read a catalogues.json, beside those that are `built_in`. Raises ScenarioError if it has another form."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        return Catalogues(msgspec.convert(document.get("catalogues"), dict[str, Any]), built_in)
    except UNDECODABLE as error:
        raise ScenarioError(f"not a file of catalogues: {error}", where=path.name, hint=HINT) from error


def plan_scenario(
    scenario: Mapping[str, Any],
    catalogues: Catalogues | Mapping[str, Any],
    *,
    trace: bool = False,
    effort: int = EFFORT,
    max_steps: int = MAX_STEPS,
    nominate: bool = True,
) -> dict[str, Any]:
    """Plan one scenario: `{name, family, summary, result, kerf}`.

    `kerf` holds what the reference's form has no place for: the coded reasons of unplaced pods with counts, what the
    `effort` gained and how far the price is from the lower bound, what became of overlays and buffers, and names that
    may be mistyped where pods have no place. With `trace` it holds the whole funnel. `max_steps`: see `Settings`.
    `nominate`: pods are told their nodes, as `kerf run` does.
    """
    known = catalogues if isinstance(catalogues, Catalogues) else Catalogues(catalogues)
    identity = {"name": str(scenario.get("name", "")), "family": str(scenario.get("family", ""))}
    if "error" in scenario and "pods" not in scenario:
        return failed(identity, str(scenario["error"]))
    try:
        check_scenario(scenario)
        reading = ScenarioReading(scenario, known, Settings(max_steps=max_steps, nominations=nominate))
        problem = reading.problem()
    except KerfError as error:
        return failed(identity, str(error))
    except (msgspec.ValidationError, AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        return failed(identity, str(ScenarioError(f"the scenario has another form: {error}", hint=HINT)))
    tracer = FunnelTracer(problem.shapes.get) if trace else None
    planned = best_plan(problem, effort, tracer)
    result = result_of(identity, problem, planned, tracer.funnel if tracer is not None else None)
    result["kerf"] |= reading.features.results(reading.offered, planned)
    if planned.unplaced or planned.ignored:
        result["kerf"]["notes"] = typo_notes(reading.offered, problem.shapes.values())
    if trace:
        result["kerf"]["effectiveZones"] = dict(sorted(Counter(effective_zones(problem).values()).items()))
    return result


def problem_of(scenario: Mapping[str, Any], catalogues: Catalogues, settings: Settings = DEFAULTS) -> Problem:
    """Read the planner's problem of a scenario, with all defaults applied (docs/plan.md, section 1.1). The scenario's
    options replace those of the settings."""
    return ScenarioReading(scenario, catalogues, settings).problem()


class ScenarioReading:
    """Reads one scenario into a Problem."""

    def __init__(self, scenario: Mapping[str, Any], catalogues: Catalogues, settings: Settings = DEFAULTS) -> None:
        self.scenario = scenario
        self.catalogues = catalogues
        self.text_now = str(scenario.get("now", "1970-01-01T00:00:00Z"))
        self.now = parse_time(self.text_now)
        self.settings = settings
        self.shapes: dict[str, PodShape] = {}
        self.features = OptionalFeatures(self.shapes)
        self.offered: list[tuple[NodePool, Catalogue]] = []  # before overlays

    def problem(self) -> Problem:
        pods = [self._pod(pod, bound=False) for pod in self._list("pods")]
        nodes = self._nodes(pods)
        pools, used = self._pools(nodes)
        daemons = [self._daemon(daemon_set) for daemon_set in self._list("daemonSets")]
        budgets = [
            self._object(pdb, "policy/v1", "PodDisruptionBudget", PodDisruptionBudget) for pdb in self._list("pdbs")
        ]
        moving = [
            pod for node in nodes if node.going for pod in reschedulable(node.pods, budgets, self.shapes, self.now)
        ]
        waiting = [pod for pod in pods if is_provisionable(pod)]
        placed_anew = {pod.uid for pod in (*waiting, *moving)}
        self.features = read_optional_features(self.scenario, self._list, self._object, self.shapes)
        pools, used = self._overlaid(pools, used)
        virtual = self.features.virtual_pods()
        of_buffers = {pod.uid for pod in virtual}
        devices = self._devices(nodes)
        return Problem(
            pods=tuple(
                PendingPod(
                    pod.uid,
                    pod.namespace,
                    pod.name,
                    pod.shape,
                    pod.created,
                    virtual=pod.uid in of_buffers,
                    device_claims=devices.claims_of(pod, self.shapes[pod.shape]),
                    accepted=bool(pod.node),
                    arrival=number,
                )
                for number, pod in enumerate(self.features.spread([*waiting, *moving, *virtual]), start=1)
            ),
            shapes=self.shapes,
            pools=pools,
            catalogues=used,
            nodes=tuple(node.input(self.shapes) for node in nodes if node.tracked and not node.going),
            daemons=tuple(self._expected(daemon, nodes) for daemon in daemons),
            namespaces=self._namespaces(),
            settings=replace(
                self.settings,
                preference_policy=self._option("preferencePolicy", "Respect", "Ignore"),
                min_values_policy=self._option("minValuesPolicy", "Strict", "BestEffort"),
                ignore_dra_requests=self._option("ignoreDraRequests", "true", "false") == "true",
            ),
            bound=tuple(
                BoundPod(pod.uid, pod.namespace, pod.shape, node.name, bool(pod.deleting), pod.name)
                for node in nodes
                for pod in node.pods
                if not is_terminal(pod) and pod.uid not in placed_anew
            ),
            volumes=self._volumes(nodes),
            devices=devices,
            leaving=tuple(node.input(self.shapes) for node in nodes if not node.tracked or node.going),
        )

    def _overlaid(
        self, pools: tuple[PoolInput, ...], used: dict[str, Any]
    ) -> tuple[tuple[PoolInput, ...], dict[str, Any]]:
        self.offered = [(pool.pool, used[pool.catalogue]) for pool in pools]
        changed = self.features.catalogues([(pool.pool, pool.catalogue, used[pool.catalogue]) for pool in pools])
        own = {name: digest for name, (digest, _) in changed.items()}
        pool_inputs = tuple(replace(pool, catalogue=own.get(pool.pool.name, pool.catalogue)) for pool in pools)
        return pool_inputs, {**used, **dict(changed.values())}

    def _volumes(self, nodes: list[StateNode]) -> VolumeFacts:
        def read(name: str, version: str, kind: str, expected: type[Any]) -> list[Any]:
            return [self._object(document, version, kind, expected) for document in self._list(name)]

        claims = read("pvcs", "v1", "PersistentVolumeClaim", VolumeClaim)
        return VolumeFacts(
            claims={claim.key: claim for claim in claims},
            volumes={volume.name: volume for volume in read("pvs", "v1", "PersistentVolume", Volume)},
            classes={
                storage_class.name: storage_class
                for storage_class in read("storageClasses", "storage.k8s.io/v1", "StorageClass", StorageClass)
            },
            limits={node.name: node.limits for node in read("csiNodes", "storage.k8s.io/v1", "CSINode", CSINode)},
            hosts=frozenset(node.node.host for node in nodes if node.node is not None),
        )

    def _devices(self, nodes: list[StateNode]) -> DeviceFacts:
        def read(name: str, kind: str, expected: type[Any]) -> list[Any]:
            return [self._object(document, "resource.k8s.io/v1", kind, expected) for document in self._list(name)]

        claims = read("resourceClaims", "ResourceClaim", ResourceClaim)
        return DeviceFacts(
            claims={claim.key: claim for claim in claims},
            classes={
                device_class.name: device_class for device_class in read("deviceClasses", "DeviceClass", DeviceClass)
            },
            slices={
                resource_slice.name: resource_slice
                for resource_slice in read("resourceSlices", "ResourceSlice", ResourceSlice)
            },
            made=made_from_templates(claims),
            leaving=frozenset(pod.uid for node in nodes if node.going for pod in node.pods),
        )

    def _namespaces(self) -> tuple[Namespace, ...]:
        """Return the namespaces of the scenario, and always `default`."""
        listed = tuple(self._object(namespace, "v1", "Namespace", Namespace) for namespace in self._list("namespaces"))
        if any(namespace.name == DEFAULT for namespace in listed):
            return listed
        return (*listed, Namespace(DEFAULT, {METADATA_NAME: DEFAULT}))

    def _option(self, name: str, *allowed: str) -> str:
        """Return one of the allowed values; the first one by default."""
        option = (self.scenario.get("options") or {}).get(name)
        value = str(option).lower() if isinstance(option, bool) else str(option or allowed[0])
        if value not in allowed:
            raise ScenarioError(f"{value} is no {name}", where=f"options.{name}", hint=f"Use {' or '.join(allowed)}")
        return value

    def _list(self, name: str) -> list[dict[str, Any]]:
        items = self.scenario.get(name) or []
        if not isinstance(items, list):
            raise ScenarioError(f"{name} is no list", where=name, hint=HINT)
        return items

    def _object(self, document: dict[str, Any], version: str, kind: str, expected: type[Any]) -> Any:
        metadata = dict(document.get("metadata") or {})
        if kind not in ("Node", "NodePool", "NodeClaim", "Namespace"):
            metadata.setdefault("namespace", "default")
        metadata.setdefault("uid", f"{kind}/{metadata.get('namespace', '')}/{metadata.get('name', '')}")
        whole = {"apiVersion": version, "kind": kind, **document, "metadata": metadata}
        decoded = decode_object(whole)
        if not isinstance(decoded.object, expected):
            raise ScenarioError(
                f"expected a {kind}, found {whole['kind']}", where=str(metadata.get("name", "")), hint=HINT
            )
        for digest, blob in decoded.blobs.items():
            if isinstance(blob, PodShape):
                self.shapes[digest] = blob
        return decoded.object

    def _pod(self, document: dict[str, Any], bound: bool) -> Pod:
        pod: Pod = self._object(with_defaults(document, self.text_now, bound), "v1", "Pod", Pod)
        return pod

    def _daemon(self, document: dict[str, Any]) -> DaemonSet:
        spec = document.get("spec") or {}
        template = spec.get("template") or {}
        filled = {**template, "spec": with_requests(template.get("spec") or {})}
        whole = {**document, "spec": {**spec, "template": filled}}
        found: DaemonSet = self._object(whole, "apps/v1", "DaemonSet", DaemonSet)
        return found

    def _expected(self, daemonset: DaemonSet, nodes: list[StateNode]) -> str:
        """Expect pods of a DaemonSet to be like its newest pod that runs (S-79)."""
        own = [
            pod
            for node in nodes
            for pod in node.pods
            if pod.owner is not None and (pod.owner.kind, pod.owner.uid) == (DAEMONSET, daemonset.uid)
        ]
        if not own:
            return daemonset.shape
        newest = max(own, key=lambda pod: (pod.created, pod.uid))
        shape = like_newest(self.shapes[daemonset.shape], self.shapes[newest.shape])
        digest, _ = content(shape)
        self.shapes[digest] = shape
        return digest

    def _nodes(self, pods: list[Pod]) -> list[StateNode]:
        by_node: dict[str, list[Pod]] = {}
        for pod in pods:
            by_node.setdefault(pod.node, []).append(pod)
        nodes = []
        for entry in self._list("nodes"):
            node = entry.get("node") and self._object(entry["node"], "v1", "Node", Node)
            claim = entry.get("nodeClaim") and self._object(
                entry["nodeClaim"], "karpenter.sh/v1", "NodeClaim", NodeClaimObject
            )
            name = node.name if node else claim.name if claim else ""
            bound = [
                replace(self._pod(pod_document, bound=True), node=name) for pod_document in entry.get("pods") or []
            ]
            if node:
                bound += by_node.get(node.name, [])
            nodes.append(StateNode(node or None, claim or None, tuple(bound), bool(entry.get("markedForDeletion"))))
        return nodes

    def _pools(self, nodes: list[StateNode]) -> tuple[tuple[PoolInput, ...], dict[str, Any]]:
        used: dict[str, Any] = {}
        pools = []
        for node_pool in self._list("nodePools"):
            pool: NodePool = self._object(node_pool, "karpenter.sh/v1", "NodePool", NodePool)
            catalogue = self.catalogues.source(*self._placed_source(pool.name))
            digest = self.catalogues.digest(catalogue)
            used[digest] = catalogue
            pools.append(PoolInput(pool, digest, usage(nodes, pool.name)))
        return tuple(pools), used

    def _source(self, pool: str) -> Any:
        """Return the SOURCE of a NodePool's instance types."""
        return self._placed_source(pool)[0]

    def _placed_source(self, pool: str) -> tuple[Any, str]:
        """Return the SOURCE of a NodePool's instance types, and where it stands."""
        own = self.scenario.get("instanceTypesByNodePool") or {}
        if pool in own:
            return own[pool], f"instanceTypesByNodePool[{pool}]"
        return self.scenario.get("instanceTypes") or NO_SOURCE, "instanceTypes"
