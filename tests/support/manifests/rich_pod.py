"""A pod with many fields, of which each is fine, and for each a value that the API server refuses."""

from __future__ import annotations

import json
from typing import Any

Row = tuple[Any, str, str]
"""A bad value, the code, and where below the field it is told."""
HTTP = {"httpGet": {"port": 80}}
ITEM = {"key": "k", "path": "a/b", "mode": 0o400}
FILES = {"items": [ITEM]}
DOWN = {"items": [{"path": "a", "mode": 0o400, "fieldRef": {"fieldPath": "metadata.labels['a']"}}]}
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "gp3",
    "volumeMode": "Filesystem",
    "volumeAttributesClassName": "fast",
    "selector": SELECTOR,
    "dataSourceRef": {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s"},
}
PROFILES = {
    "seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/a.json"},
    "appArmorProfile": {"type": "Localhost", "localhostProfile": "a"},
}
CONTAINER: dict[str, Any] = {
    "name": "c",
    "image": "i",
    "restartPolicy": "Always",
    "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}],
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 81, "name": "metrics"}],
    "env": [
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a/b']"}}},
        {"name": "B-c.d", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}},
        {"name": "D", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
    ],
    "envFrom": [{"prefix": "P_", "configMapRef": {"name": "a"}}, {"secretRef": {"name": "a"}}],
    "volumeMounts": [
        {"name": "a", "mountPath": "/a", "subPath": "x..y"},
        {"name": "a", "mountPath": "/b", "subPathExpr": "$(A)", "readOnly": True, "recursiveReadOnly": "Enabled"},
    ],
    "volumeDevices": [{"name": "claimed", "devicePath": "/dev/x"}],
    "resources": {"claims": [{"name": "gpu", "request": "r"}]},
    "securityContext": {"allowPrivilegeEscalation": False, "procMount": "Default", **PROFILES},
    "livenessProbe": {**HTTP, "terminationGracePeriodSeconds": 5},
    "startupProbe": {**HTTP, "terminationGracePeriodSeconds": 5},
    "readinessProbe": HTTP,
    "lifecycle": {"preStop": {"sleep": {"seconds": 30}}},
}
VOLUMES: list[dict[str, Any]] = [
    {"name": "a", "configMap": {"name": "a", "defaultMode": 0o777, **FILES}},
    {"name": "b", "secret": {"secretName": "a", "defaultMode": 0, **FILES}},
    {"name": "c", "downwardAPI": {"defaultMode": 0o644, **DOWN}},
    {"name": "d", "projected": {"defaultMode": 0o644, "sources": [{"configMap": {"name": "a", **FILES}}]}},
    {"name": "e", "projected": {"sources": [{"secret": {"name": "a", **FILES}}]}},
    {"name": "f", "projected": {"sources": [{"downwardAPI": DOWN}]}},
    {"name": "g", "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 600}}]}},
    {"name": "h", "csi": {"driver": "EFS.csi.aws.com"}},
    {"name": "i", "nfs": {"server": "s", "path": "/x"}},
    {"name": "j", "awsElasticBlockStore": {"volumeID": "vol-1"}},
    {"name": "k", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}},
    {"name": "l", "hostPath": {"path": "/a..b"}},
    {"name": "claimed", "persistentVolumeClaim": {"claimName": "a"}},
]
_POD: dict[str, Any] = {
    "containers": [CONTAINER],
    "initContainers": [{**CONTAINER, "name": "first"}],
    "volumes": VOLUMES,
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}, {"name": "b", "resourceClaimTemplateName": "t"}],
    "dnsConfig": {"searches": ["_a.b.", "."], "options": [{"name": "ndots", "value": "2"}]},
    "hostnameOverride": "web.example.com",
    "readinessGates": [{"conditionType": "example.com/ready"}],
    "securityContext": {
        "supplementalGroups": [5],
        "seLinuxChangePolicy": "Recursive",
        "sysctls": [{"name": "net.core.somaxconn", "value": "1"}, {"name": "net/ipv4/x_y", "value": "1"}],
        **PROFILES,
    },
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {},
            "nodeAffinityPolicy": "Honor",
            "nodeTaintsPolicy": "Ignore",
        }
    ],
}
POD: dict[str, Any] = json.loads(json.dumps(_POD))
"""Without parts that are one object, so that a change is in one place."""
_OF_PROFILES: dict[str, Row] = {
    "securityContext.seccompProfile": ({"type": "Localhost"}, "KERF304", ".localhostProfile"),
    "securityContext.seccompProfile.type": ("localhost", "KERF305", ""),
    "securityContext.seccompProfile.localhostProfile": ("../a.json", "KERF305", ""),
    "securityContext.appArmorProfile": (
        {"type": "RuntimeDefault", "localhostProfile": ""},
        "KERF305",
        ".localhostProfile",
    ),
    "securityContext.appArmorProfile.type": ("None", "KERF305", ""),
}
_OF_CONTAINERS: dict[str, Row] = {
    "image": ("", "KERF304", ""),
    "name": ("", "KERF304", ""),
    "restartPolicyRules.0": ({"action": "Restart"}, "KERF304", ".exitCodes"),
    "restartPolicyRules.0.action": ("Stop", "KERF305", ""),
    "restartPolicyRules.0.exitCodes.operator": ("Exists", "KERF305", ""),
    "resizePolicy": ([CONTAINER["resizePolicy"][0]] * 2, "KERF321", "[1].resourceName"),
    "resizePolicy.0": ({"resourceName": "cpu", "restartPolicy": ""}, "KERF304", ".restartPolicy"),
    "resizePolicy.0.resourceName": ("gpu", "KERF305", ""),
    "resizePolicy.0.restartPolicy": ("Always", "KERF305", ""),
    "ports": ([{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}], "KERF321", "[1].name"),
    "env.0": ({"name": "", "value": "x"}, "KERF304", ".name"),
    "env.0.name": ("a=b", "KERF312", ""),
    "env.0.valueFrom.fieldRef.fieldPath": ("metadata.nam", "KERF305", ""),
    "env.1.valueFrom.resourceFieldRef.resource": ("cpu", "KERF305", ""),
    "env.2.valueFrom.configMapKeyRef": ({"name": "a", "key": ""}, "KERF304", ".key"),
    "env.2.valueFrom.configMapKeyRef.key": ("a b", "KERF312", ""),
    "env.3.valueFrom.secretKeyRef": ({"name": "A b", "key": "a"}, "KERF312", ".name"),
    "env.3.valueFrom.secretKeyRef.key": ("é", "KERF312", ""),
    "envFrom.0.prefix": ("é", "KERF312", ""),
    "envFrom.0.configMapRef": ({"name": ""}, "KERF304", ".name"),
    "envFrom.1.secretRef": ({}, "KERF304", ".name"),
    "volumeMounts.0": ({"name": "", "mountPath": "/a"}, "KERF304", ".name"),
    "volumeMounts.0.subPath": ("/x", "KERF305", ""),
    "volumeMounts.1.subPathExpr": ("a/../b", "KERF305", ""),
    "volumeMounts.0.subPathExpr": ("x", "KERF309", ""),
    "volumeMounts.1.readOnly": (False, "KERF305", ""),
    "volumeMounts.1.mountPropagation": ("HostToContainer", "KERF305", ""),
    "volumeMounts.0.mountPropagation": ("Bidirectional", "KERF305", ""),
    "volumeDevices.0": ({"name": "claimed", "devicePath": ""}, "KERF304", ".devicePath"),
    "resources.claims.0": ({"name": ""}, "KERF304", ".name"),
    "resources.claims.0.name": ("gp", "KERF305", ""),
    "resources.claims.0.request": ("R", "KERF312", ""),
    "securityContext": (
        {"allowPrivilegeEscalation": False, "privileged": True},
        "KERF309",
        ".allowPrivilegeEscalation",
    ),
    "securityContext.capabilities": ({"add": ["CAP_SYS_ADMIN"]}, "KERF309", ""),
    "securityContext.procMount": ("", "KERF305", ""),
    **_OF_PROFILES,
    "livenessProbe.terminationGracePeriodSeconds": (0, "KERF309", ""),
    "startupProbe.terminationGracePeriodSeconds": (-1, "KERF309", ""),
    "readinessProbe.terminationGracePeriodSeconds": (5, "KERF305", ""),
    "lifecycle.preStop.sleep.seconds": (31, "KERF309", ""),
}
_OF_ITEMS: dict[str, Row] = {
    "items.0": ({"key": "k", "path": ""}, "KERF304", ".path"),
    "items.0.path": ("../x", "KERF305", ""),
    "items.0.mode": (0o1000, "KERF309", ""),
}
_OF_DOWN: dict[str, Row] = {
    "items.0": ({"path": "a"}, "KERF304", ""),
    "items.0.path": ("/x", "KERF305", ""),
    "items.0.mode": (-1, "KERF309", ""),
    "items.0.fieldRef.fieldPath": ("spec.nodeName", "KERF305", ""),
}
_OF_CLAIMS: dict[str, Row] = {
    "spec": ({"accessModes": ["ReadWriteOnce"]}, "KERF304", ".resources.requests[storage]"),
    "spec.accessModes": ([], "KERF304", ""),
    "spec.accessModes.0": ("", "KERF305", ""),
    "spec.resources": ({}, "KERF304", ".requests[storage]"),
    "spec.storageClassName": ("GP3", "KERF312", ""),
    "spec.volumeMode": ("Disk", "KERF305", ""),
    "spec.volumeAttributesClassName": ("A b", "KERF312", ""),
    "spec.dataSourceRef": ({"kind": "Volume", "name": "a"}, "KERF305", ".kind"),
    "spec.selector.matchLabels": ({"a": "b c"}, "KERF312", "[a]"),
    "spec.selector.matchExpressions.0.key": ("a b", "KERF312", ""),
    "spec.selector.matchExpressions.0.values.0": ("b c", "KERF312", ""),
}
_OF_VOLUMES: dict[str, Row] = {
    "11": ({"name": "", "emptyDir": {}}, "KERF304", ".name"),
    "0.configMap": ({}, "KERF304", ".name"),
    "1.secret": ({}, "KERF304", ".secretName"),
    "0.configMap.defaultMode": (0o1000, "KERF309", ""),
    "1.secret.defaultMode": (-1, "KERF309", ""),
    "2.downwardAPI.defaultMode": (0o1000, "KERF309", ""),
    "3.projected.defaultMode": (0o1000, "KERF309", ""),
    **{f"0.configMap.{field}": row for field, row in _OF_ITEMS.items()},
    **{f"1.secret.{field}": row for field, row in _OF_ITEMS.items()},
    **{f"2.downwardAPI.{field}": row for field, row in _OF_DOWN.items()},
    **{f"3.projected.sources.0.configMap.{field}": row for field, row in _OF_ITEMS.items()},
    **{f"4.projected.sources.0.secret.{field}": row for field, row in _OF_ITEMS.items()},
    **{f"5.projected.sources.0.downwardAPI.{field}": row for field, row in _OF_DOWN.items()},
    "3.projected.sources.0": ({"configMap": {"name": "a"}, "secret": {"name": "a"}}, "KERF309", ""),
    "6.projected.sources.0.serviceAccountToken": ({"path": ""}, "KERF304", ".path"),
    "6.projected.sources.0.serviceAccountToken.expirationSeconds": (599, "KERF309", ""),
    "7.csi": ({"driver": ""}, "KERF304", ".driver"),
    "7.csi.driver": ("a_b", "KERF312", ""),
    "8.nfs": ({"server": "", "path": "/x"}, "KERF304", ".server"),
    "8.nfs.path": ("x", "KERF305", ""),
    "9.awsElasticBlockStore": ({"volumeID": ""}, "KERF304", ".volumeID"),
    "10.ephemeral": ({}, "KERF304", ".volumeClaimTemplate"),
    **{f"10.ephemeral.volumeClaimTemplate.{field}": row for field, row in _OF_CLAIMS.items()},
    "11.hostPath.path": ("/a/../b", "KERF305", ""),
}
BAD: dict[str, Row] = {
    "containers.0.restartPolicy": (None, "KERF304", ""),
    **{f"containers.0.{field}": row for field, row in _OF_CONTAINERS.items()},
    **{f"initContainers.0.{field}": row for field, row in _OF_CONTAINERS.items()},
    **{f"volumes.{field}": row for field, row in _OF_VOLUMES.items()},
    **_OF_PROFILES,
    "resourceClaims": ([POD["resourceClaims"][0]] * 2, "KERF321", "[1].name"),
    "resourceClaims.1": ({"name": "b"}, "KERF304", ""),
    "resourceClaims.1.name": ("B", "KERF312", ""),
    "resourceClaims.0.resourceClaimName": ("G", "KERF312", ""),
    "resourceClaims.0.resourceClaimTemplateName": ("g", "KERF309", ""),
    "resourceClaims.1.resourceClaimTemplateName": ("T", "KERF312", ""),
    "dnsConfig.searches.0": ("Svc", "KERF312", ""),
    "dnsConfig.options.0": ({"value": "1"}, "KERF304", ".name"),
    "hostnameOverride": ("a" * 65, "KERF312", ""),
    "readinessGates.0.conditionType": ("a b", "KERF312", ""),
    "securityContext.supplementalGroups.0": (-1, "KERF309", ""),
    "securityContext.seLinuxChangePolicy": ("", "KERF305", ""),
    "securityContext.sysctls": ([POD["securityContext"]["sysctls"][0]] * 2, "KERF321", "[1].name"),
    "securityContext.sysctls.0": ({"name": "", "value": "1"}, "KERF304", ".name"),
    "securityContext.sysctls.0.name": ("a b", "KERF312", ""),
    "tolerations.0.effect": ("NoRun", "KERF305", ""),
    "topologySpreadConstraints.0.whenUnsatisfiable": ("Wait", "KERF305", ""),
    "topologySpreadConstraints.0.maxSkew": (0, "KERF309", ""),
    "topologySpreadConstraints.0.nodeAffinityPolicy": ("", "KERF305", ""),
    "topologySpreadConstraints.0.nodeTaintsPolicy": ("Never", "KERF305", ""),
}
