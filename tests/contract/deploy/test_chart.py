"""The Helm charts: what they render for which values (L-325 to L-341, L-343 to L-357)."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from kerf.adapters.cli.doctor.rights import Right, needed
from kerf.adapters.manager.flags import Flags
from kerf.adapters.manager.settings import NAMES, read_settings
from kerf.adapters.web.cluster.forwarding import PORT_NAME
from kerf.adapters.web.cluster.in_cluster import URL
from tests.support.servers.helm import CHARTS, helm, of_kind, rendered

pytestmark = pytest.mark.slow
POSTGRES = "store.postgres.existingSecret=kerf-store"
READS = {"get", "list", "watch"}


def deployment(*values: str) -> dict[str, Any]:
    (found,) = of_kind(rendered(*values), "Deployment")
    return found


def environment(*values: str) -> dict[str, str]:
    (container,) = deployment(*values)["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable.get("value", "") for variable in container["env"]}


def test_sqlite_is_one_replica_and_postgresql_two() -> None:
    """L-325: one writer on one volume."""
    one, two = deployment(), deployment(POSTGRES)
    assert (one["spec"]["replicas"], one["spec"]["strategy"]) == (1, {"type": "Recreate"})
    assert (two["spec"]["replicas"], two["spec"]["strategy"]) == (2, {"rollingUpdate": {"maxUnavailable": 1}})
    assert deployment("mode=observe", POSTGRES)["spec"]["replicas"] == 1
    assert deployment("replicas=0")["spec"]["replicas"] == 0
    for values in (["replicas=2"], ["replicas=2", "mode=observe", POSTGRES]):
        with pytest.raises(ValueError, match="replicas: more than one needs"):
            rendered(*values)


def test_the_record_outlives_the_release() -> None:
    (claim,) = of_kind(rendered(), "PersistentVolumeClaim")
    assert claim["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert not of_kind(rendered(POSTGRES), "PersistentVolumeClaim")


def test_the_pod_may_little_and_runs_where_kerf_makes_no_nodes() -> None:
    """The pod has few rights, and runs on nodes that kerf does not make (L-328, L-329, L-333, L-340)."""
    spec = deployment()["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert (security["runAsNonRoot"], security["readOnlyRootFilesystem"]) == (True, True)
    assert (security["allowPrivilegeEscalation"], security["capabilities"]) == (False, {"drop": ["ALL"]})
    assert spec["securityContext"]["fsGroup"] == security["runAsUser"] == 65532
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]
    labels = deployment()["spec"]["selector"]["matchLabels"]
    (spread,) = spec["topologySpreadConstraints"]
    assert spread["labelSelector"] == {"matchLabels": labels}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}


def test_every_setting_becomes_a_variable_that_kerf_knows() -> None:
    """L-335; and L-337's quirk is none here: false is said, not left out."""
    values = yaml.safe_load((CHARTS / "kerf" / "values.yaml").read_text(encoding="utf-8"))["settings"]
    given = {
        "clusterName": "prod", "clusterCABundle": "TUlJ", "interruptionQueue": "prod",
        "clusterEndpoint": "https://10.0.0.1", "batchMaxDuration": "20s", "batchIdleDuration": "2s",
        "preferencePolicy": "Ignore", "minValuesPolicy": "BestEffort", "vmMemoryOverheadPercent": "0",
        "schedulerConfig": None, "retainObservations": "3d", "retainDecisions": "0", "retainSize": "5Gi",
        "amiRefreshInterval": "5m", "subnetRefreshInterval": "2m",
        "longestTurn": "10m",
    }  # fmt: skip
    numbers = ("kubeClientQPS", "kubeClientBurst", "reservedENIs", "batchEnoughPods", "effort")
    names = [name for name in values if name not in ("featureGates", "awsFeatureGates", "schedulerConfig")]
    flags = [f"settings.{name}={given.get(name, '7' if name in numbers else 'false')}" for name in names]
    constraint = "settings.schedulerConfig.podTopologySpread.defaultConstraints[0]"
    flags += [
        f"{constraint}.maxSkew=2",
        f"{constraint}.topologyKey=zone",
        f"{constraint}.whenUnsatisfiable=DoNotSchedule",
    ]
    found = environment(*flags, "settings.featureGates.nodeOverlay=true", "settings.awsFeatureGates.nodeClassCEL=true")
    own = {"KERF_MODE", "KERF_PROVIDER", "KERF_STORE"}
    assert found.keys() - own <= {name.upper() for name in NAMES}
    options = read_settings(Flags(), found)
    assert (options.engine.batch_max, options.engine.preference_policy) == (20_000, "Ignore")
    assert (options.engine.ignore_dra_requests, options.engine.node_overlays) == (False, True)
    assert options.aws.node_class_cel
    assert (options.qps, options.aws.reserved_enis, options.aws.memory_overhead) == (7, 7, 0.0)
    assert options.engine.default_spread[0].max_skew == 2
    assert (options.engine.effort, options.engine.keep_until_replaced) == (7, False)
    assert (options.retention.decisions, options.retention.size) == (0, 5 << 30)
    assert len(found) >= len(names)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("logLevl=debug", "logLevl"), ("settings.clusterNam=prod", "clusterNam"), ("store.sqlite.siez=5Gi", "siez"),
        ("controller.image.repositry=x", "repositry"), ("settings.featureGates.nodeOverlays=true", "nodeOverlays"),
        ("settings.awsFeatureGates.nodeClassCel=true", "nodeClassCel"),
        ("logLevel=trace", "logLevel"), ("mode=contrl", "mode"), ("provider=azure", "provider"),
        ("settings.preferencePolicy=Ignored", "preferencePolicy"),
        ("settings.batchIdleDuration=5", "batchIdleDuration"),
        ("settings.batchMaxDuration=10 seconds", "batchMaxDuration"), ("settings.retainSize=8 GB", "retainSize"),
        ("settings.featureGates.nodeRepair=yes", "nodeRepair"), ("replicas=two", "replicas"),
        ("settings.kubeClientQPS=-1", "kubeClientQPS"), ("tolerations=all", "tolerations"),
        ("provider=aws", "settings.clusterName: provider=aws needs the cluster's name"),
    ],
)  # fmt: skip
def test_a_value_that_is_wrong_or_that_nobody_reads_is_refused_by_name(value: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        rendered(value)


def test_where_nodes_come_from_has_no_default() -> None:
    with pytest.raises(ValueError, match="provider: where nodes come from: --set provider=aws"):
        rendered("provider=")


def test_the_image_of_karpenter_is_not_run_as_kerf() -> None:
    with pytest.raises(ValueError, match=r"controller\.image: this is Karpenter"):
        rendered("controller.image.repository=public.ecr.aws/karpenter/controller")


KARPENTERS = """
imagePullPolicy: Always
service: {annotations: {team: a}}
webhook: {enabled: true, port: 8443}
logConfig: {enabled: false}
terminationGracePeriodSeconds:
dnsConfig: {options: [{name: ndots, value: "1"}]}
initContainers: [{name: before, image: busybox}]
controller:
  containerName: karpenter
  image: {repository: registry.example.com/kerf, tag: "", digest: ""}
  sidecarContainer: [{name: beside, image: busybox}]
  sidecarVolumeMounts: [{name: extra, mountPath: /extra}]
  errorLogLevel: ""
logErrorOutputPaths: [stderr]
settings:
  clusterName: prod
  clusterEndpoint: ""
  clusterCABundle: ""
  batchMaxDuration: 20s
  reservedENIs: "1"
  vmMemoryOverheadPercent: 0.05
  isolatedVPC: false
  assumeRoleARN: arn:aws:iam::123456789012:role/karpenter
  assumeRoleDuration: 15m
  interruptionQueue: prod
  featureGates: {drift: true, reservedCapacity: true, spotToSpotConsolidation: true}
"""
"""Values of Karpenter's charts from 0.35 to 1.14, in one file."""


def test_l325_l336_a_values_file_of_karpenters_is_taken_and_what_has_no_effect_is_told(tmp_path: Path) -> None:
    shutil.copytree(CHARTS / "kerf", tmp_path / "kerf")
    notes = 'notes: |\n  {{- include "kerf.unused" . | trim | nindent 2 }}\nkind: Notes\n'
    (tmp_path / "kerf" / "templates" / "notes.yaml").write_text(notes, encoding="utf-8")
    (tmp_path / "values.yaml").write_text(KARPENTERS, encoding="utf-8")
    command = [helm(), "template", "kerf", str(tmp_path / "kerf"), "-f", str(tmp_path / "values.yaml")]
    done = subprocess.run([*command, "--set", "provider=aws"], capture_output=True, text=True, check=True)
    documents = [document for document in yaml.safe_load_all(done.stdout) if document]
    (told,) = of_kind(documents, "Notes")
    assert [line.partition(":")[0] for line in told["notes"].splitlines()] == [
        "- controller.containerName", "- logConfig", "- logErrorOutputPaths", "- service",
        "- settings.assumeRoleARN", "- settings.assumeRoleDuration", "- settings.featureGates.drift",
        "- webhook",
    ]  # fmt: skip
    (made,) = of_kind(documents, "Deployment")
    spec = made["spec"]["template"]["spec"]
    controller, beside = spec["containers"]
    assert (controller["imagePullPolicy"], spec["terminationGracePeriodSeconds"]) == ("Always", 30)
    assert (spec["initContainers"][0]["name"], spec["dnsConfig"]["options"][0]["name"]) == ("before", "ndots")
    assert (beside["name"], beside["volumeMounts"]) == ("beside", [{"name": "extra", "mountPath": "/extra"}])
    found = {entry["name"]: entry["value"] for entry in controller["env"] if "value" in entry}
    assert (found["BATCH_MAX_DURATION"], found["RESERVED_ENIS"], found["ISOLATED_VPC"]) == ("20s", "1", "false")
    assert not {"CLUSTER_ENDPOINT", "ASSUME_ROLE_ARN", "ASSUME_ROLE_DURATION"} & found.keys()
    assert read_settings(Flags(), found).engine.spot_to_spot


def test_l336_values_that_karpenters_chart_has_for_nothing_are_taken(tmp_path: Path) -> None:
    """`helm show values` of its chart 1.6 has them, and people keep the whole file."""
    nothing = "initContainers: {}\nserviceMonitor: {relabelings: [], metricRelabelings: [], endpointConfig: {}}\n"
    (tmp_path / "values.yaml").write_text(nothing, encoding="utf-8")
    command = [helm(), "template", "kerf", str(CHARTS / "kerf"), "-f", str(tmp_path / "values.yaml")]
    done = subprocess.run([*command, "--set", "provider=kwok"], capture_output=True, text=True, check=False)
    assert (done.returncode, "initContainers" in done.stdout) == (0, False), done.stderr


def test_a_definition_that_is_none_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match=r"nodepool\.karpenter\.sh|skip"):
        rendered("skip[0]=nodepool.karpenter.sh", chart="kerf-crd")


def test_the_name_of_the_cluster_may_come_by_the_environment() -> None:
    named = "controller.env[0].name=CLUSTER_NAME", "controller.env[0].value=prod"
    assert environment("provider=aws", *named)["CLUSTER_NAME"] == "prod"
    assert environment("provider=aws", "controller.envFrom[0].secretRef.name=aws")["KERF_PROVIDER"] == "aws"


def test_values_left_alone_leave_kerfs_defaults() -> None:
    found = read_settings(Flags(), environment())
    assert found.engine == read_settings(Flags(), {}).engine
    assert found.lease_namespace == "kerf"
    assert read_settings(Flags(), environment("leaderElectionNamespace=karpenter")).lease_namespace == "karpenter"


def test_observe_mode_may_only_read() -> None:
    """Nothing at all may be written, not even an Event or a Lease."""
    documents = rendered("mode=observe")
    (core,) = [role for role in of_kind(documents, "ClusterRole") if role["metadata"]["name"] == "kerf-core"]
    assert {verb for rule in core["rules"] for verb in rule["verbs"]} == READS
    assert [role["roleRef"]["name"] for role in of_kind(documents, "ClusterRoleBinding")] == ["kerf-core"]
    assert not of_kind(documents, "Role")


def test_control_mode_writes_what_the_reference_does_and_no_secrets() -> None:
    """Control mode writes what the reference does and no secrets (L-349 to L-354)."""
    documents = rendered()
    rules = [rule for cluster_role in of_kind(documents, "ClusterRole") for rule in cluster_role["rules"]]
    rules += [rule for namespaced_role in of_kind(documents, "Role") for rule in namespaced_role["rules"]]
    assert not [rule for rule in rules if {"secrets", "configmaps", "*"} & set(rule["resources"])]
    assert not [rule for rule in rules if "*" in rule["verbs"]]
    (role,) = of_kind(documents, "Role")
    assert role["rules"][1]["resourceNames"] == ["karpenter-leader-election"]


@pytest.mark.parametrize("mode", ["control", "observe"])
def test_the_right_to_ask_who_scrapes_comes_with_the_setting(mode: str) -> None:
    plain, asking = rendered(f"mode={mode}"), rendered(f"mode={mode}", "settings.metricsAuthorization=true")
    before = {role["metadata"]["name"] for role in of_kind(plain, "ClusterRole")}
    new = {role["metadata"]["name"]: role for role in of_kind(asking, "ClusterRole")}
    assert new.keys() - before == {"kerf-reviews", "kerf-metrics-reader"}
    ask = partial(needed, mode, "kwok", lease_namespace="kerf", lease_name="karpenter-leader-election")
    wanted = set(ask(metrics_authorization=True)) - set(ask())
    assert _rights(new["kerf-reviews"]["rules"]) == wanted
    assert new["kerf-metrics-reader"]["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    bound = {role["roleRef"]["name"] for role in of_kind(asking, "ClusterRoleBinding")}
    assert "kerf-reviews" in bound
    assert "kerf-metrics-reader" not in bound


@pytest.mark.parametrize("mode", ["control", "observe"])
@pytest.mark.parametrize("provider", ["kwok", "aws"])
def test_the_roles_give_what_kerf_doctor_asks_for_and_nothing_else(mode: str, provider: str) -> None:
    documents = rendered(f"mode={mode}", f"provider={provider}", "settings.clusterName=prod")
    given: set[Right] = set()
    for document in of_kind(documents, "ClusterRole"):
        if not document["metadata"]["name"].endswith("-admin"):
            given |= _rights(document["rules"])
    for document in of_kind(documents, "Role"):
        given |= _rights(document["rules"], document["metadata"]["namespace"])
    wanted = needed(mode, provider, lease_namespace="kerf", lease_name="karpenter-leader-election")
    assert given == set(wanted)


def test_the_template_gives_the_rights_of_the_watched_kinds() -> None:
    """Without helm: for KWOK in control mode, where the template is plain but for the provider's own lines."""
    text = (CHARTS / "kerf" / "templates" / "rbac.yaml").read_text(encoding="utf-8")
    roles = text[: text.index("kind: Role\n")]
    roles = re.sub(r'{{- if eq \.Values\.provider "aws" }}.*?{{- end }}', "", roles, flags=re.DOTALL)
    roles = roles.replace('{{ if eq .Values.provider "kwok" }}create, {{ end }}', "create, ")
    roles = roles.replace("{{ first $class }}", "karpenter.kwok.sh").replace("{{ last $class }}", "kwoknodeclasses")
    rule = r"- apiGroups: (\[.*\])\n +resources: (\[.*\])\n +verbs: (\[.*\])"
    names = ("apiGroups", "resources", "verbs")
    rules = [dict(zip(names, map(yaml.safe_load, groups), strict=True)) for groups in re.findall(rule, roles)]
    wanted = needed("control", "kwok", lease_namespace="kerf", lease_name="lease")
    assert _rights(rules) == {right for right in wanted if right.group != "coordination.k8s.io"}


def _rights(rules: list[dict[str, Any]], namespace: str = "") -> set[Right]:
    return {
        Right(group, resource, verb, namespace, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


def test_a_service_monitor_is_made_when_it_is_wanted() -> None:
    """A service monitor is made when it is wanted (L-331)."""
    assert not of_kind(rendered(), "ServiceMonitor")
    (monitor,) = of_kind(rendered("serviceMonitor.enabled=true"), "ServiceMonitor")
    assert monitor["spec"]["endpoints"] == [{"port": "http-metrics", "path": "/metrics"}]
    named = ["serviceMonitor.relabelings[0].action=keep", "serviceMonitor.metricRelabelings[0].action=drop"]
    (monitor,) = of_kind(rendered("serviceMonitor.enabled=true", *named), "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["relabelings"], endpoint["metricRelabelings"]) == ([{"action": "keep"}], [{"action": "drop"}])


MONITORING = "networkPolicy.scrapers[0].namespaceSelector.matchLabels.team=monitoring"


def policy(*values: str) -> dict[str, Any]:
    """The spec of the release's NetworkPolicy."""
    (found,) = of_kind(rendered("networkPolicy.enabled=true", *values), "NetworkPolicy")
    spec: dict[str, Any] = found["spec"]
    return spec


def _reached(rules: list[dict[str, Any]]) -> set[tuple[str, int]]:
    """The ports that anybody, or everything, is reached at."""
    return {(port["protocol"], port["port"]) for rule in rules if not rule.keys() - {"ports"} for port in rule["ports"]}


def test_a_network_policy_is_made_when_it_is_wanted() -> None:
    assert not of_kind(rendered(), "NetworkPolicy")
    spec = policy()
    assert spec["podSelector"]["matchLabels"] == deployment()["spec"]["selector"]["matchLabels"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert spec["ingress"] == [{"ports": [{"protocol": "TCP", "port": 8081}]}], "probes; nobody scrapes"
    assert _reached(spec["egress"]) == {("UDP", 53), ("TCP", 53), ("TCP", 443), ("TCP", 6443)}
    assert len(spec["egress"]) == 2, "nothing else"


def test_the_network_policy_lets_through_what_kerf_needs() -> None:
    spec = policy(MONITORING, POSTGRES, "networkPolicy.postgresPort=6432", "controller.metrics.port=9090")
    peers = [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]
    assert spec["ingress"][1] == {"from": peers, "ports": [{"protocol": "TCP", "port": 9090}]}
    assert ("TCP", 6432) in _reached(spec["egress"])
    aws = policy("provider=aws", "settings.clusterName=prod", "networkPolicy.extraEgress[0].ports[0].port=3128")
    credentials, extra = aws["egress"][2:]
    assert [peer["ipBlock"]["cidr"] for peer in credentials["to"]] == [
        "169.254.170.23/32", "169.254.169.254/32", "fd00:ec2::23/128", "fd00:ec2::254/128",
    ]  # fmt: skip
    assert (credentials["ports"], extra) == ([{"protocol": "TCP", "port": 80}], {"ports": [{"port": 3128}]})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["hostNetwork=true"], "no policy holds for a pod with hostNetwork"),
        (["serviceMonitor.enabled=true"], "networkPolicy.scrapers: nobody could scrape"),
        (["networkPolicy.scraper=x"], "scraper"),
        (["networkPolicy.apiServerPorts[0]=https"], "apiServerPorts"),
    ],
)
def test_a_network_policy_that_would_not_hold_is_refused(values: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        policy(*values)
    rendered("networkPolicy.enabled=true", "serviceMonitor.enabled=true", MONITORING)


EXPLORER = "explorer.enabled=true"
REVIEWS = [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]


def named(documents: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (found,) = [document for document in of_kind(documents, kind) if document["metadata"]["name"] == name]
    return found


def explorer_of(pod: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [container for container in pod["containers"] if container["name"] == "explorer"]
    return found


@pytest.mark.parametrize("store", ["mode=control", "mode=observe", POSTGRES])
def test_the_explorer_comes_when_it_is_wanted_and_may_only_ask_who_reads(store: str) -> None:
    assert not [found for found in rendered(store) if "explorer" in yaml.safe_dump(found)]
    documents = rendered(store, EXPLORER)
    assert named(documents, "ClusterRole", "kerf-explorer")["rules"] == REVIEWS
    bound = [
        binding["roleRef"]["name"]
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for binding in of_kind(documents, kind)
        if binding["subjects"][0]["name"] == "kerf-explorer"
    ]
    assert bound == ["kerf-explorer"]
    reading = [{"nonResourceURLs": [URL], "verbs": ["get"]}]
    assert named(documents, "ClusterRole", "kerf-explorer-reader")["rules"] == reading
    plain = [found for found in documents if "explorer" not in yaml.safe_dump(found)]
    assert plain == [found for found in rendered(store) if store == POSTGRES or found["kind"] != "Deployment"]


@pytest.mark.parametrize("store", ["mode=control", POSTGRES])
def test_the_explorer_is_a_small_process_without_rights_on_its_machine(store: str) -> None:
    name = "kerf-explorer" if store == POSTGRES else "kerf"
    spec = named(rendered(store, EXPLORER), "Deployment", name)["spec"]["template"]["spec"]
    explorer, security = explorer_of(spec), explorer_of(spec)["securityContext"]
    assert (security["runAsNonRoot"], security["readOnlyRootFilesystem"]) == (True, True)
    assert (security["allowPrivilegeEscalation"], security["capabilities"]) == (False, {"drop": ["ALL"]})
    assert explorer["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi"}
    assert explorer["ports"] == [{"name": PORT_NAME, "containerPort": 8082}]
    assert explorer["args"] == ["ui", "--tokens", "cluster", "--port", "8082"]
    assert {mount["name"] for mount in explorer["volumeMounts"]} <= {volume["name"] for volume in spec["volumes"]}


def test_with_sqlite_the_explorer_is_where_the_volume_is_and_shows_a_token_of_its_own() -> None:
    documents = rendered(EXPLORER)
    spec = named(documents, "Deployment", "kerf")["spec"]["template"]["spec"]
    (store,) = explorer_of(spec)["env"]
    assert store == {"name": "KERF_STORE", "value": environment()["KERF_STORE"]}
    mounts = {mount["mountPath"]: mount["name"] for mount in explorer_of(spec)["volumeMounts"]}
    assert mounts["/var/run/secrets/kubernetes.io/serviceaccount"] == "explorer-token"
    secret = named(documents, "Secret", "kerf-explorer")
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": "kerf-explorer"}


def test_with_postgresql_the_explorer_is_a_deployment_that_no_selector_of_kerf_meets() -> None:
    documents = rendered(EXPLORER, POSTGRES, "explorer.postgres.existingSecret=reader", "networkPolicy.enabled=true")
    spec = named(documents, "Deployment", "kerf-explorer")["spec"]
    assert spec["template"]["spec"]["serviceAccountName"] == "kerf-explorer"
    secret = explorer_of(spec["template"]["spec"])["env"][0]["valueFrom"]["secretKeyRef"]
    assert secret == {"name": "reader", "key": "url"}
    labels = spec["template"]["metadata"]["labels"].items()
    kerfs = [
        named(documents, "Deployment", "kerf")["spec"]["selector"]["matchLabels"],
        named(documents, "Service", "kerf")["spec"]["selector"],
        named(documents, "PodDisruptionBudget", "kerf")["spec"]["selector"]["matchLabels"],
        named(documents, "NetworkPolicy", "kerf")["spec"]["podSelector"]["matchLabels"],
    ]
    assert not any(selector.items() <= labels for selector in kerfs)
    policy = named(documents, "NetworkPolicy", "kerf-explorer")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= labels
    assert (policy["policyTypes"], "ingress" in policy) == (["Ingress", "Egress"], False), "nothing comes in"
    assert _reached(policy["egress"]) == {("UDP", 53), ("TCP", 53), ("TCP", 443), ("TCP", 6443), ("TCP", 5432)}


def test_the_definitions_are_those_of_deploy_crds() -> None:
    files = sorted((CHARTS.parent / "crds").glob("*.yaml"))
    wanted = [yaml.safe_load(Path(file).read_text(encoding="utf-8")) for file in files]
    assert sorted(rendered(chart="kerf-crd"), key=_name) == sorted(wanted, key=_name)
    skipped = rendered("skip[0]=nodepools.karpenter.sh", chart="kerf-crd")
    assert len(skipped) == len(wanted) - 1


def _name(document: dict[str, Any]) -> str:
    name: str = document["metadata"]["name"]
    return name


def _commands() -> list[str]:
    """The helm commands of the pages that install."""
    pages = [CHARTS.parents[1] / "docs" / name for name in ("install.md", "eks.md", "migrate.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    return [found for text in texts for found in re.findall(r"^\$ (helm [^\n]+)$", text, re.MULTILINE)]


@pytest.mark.parametrize("command", _commands())
def test_the_commands_of_the_installation_render(command: str) -> None:
    words = shlex.split(command.partition(" > ")[0])
    done = subprocess.run(
        [helm(), "template", *words[2:], "--kube-version", "1.36.0"],
        cwd=CHARTS.parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "kind:" in done.stdout
