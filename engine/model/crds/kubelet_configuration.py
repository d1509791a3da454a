"""The types of KubeletConfiguration (kubelet.config.k8s.io/v1beta1, as of Kubernetes 1.36), by key (A-49, A-50)."""

from __future__ import annotations

from kerf.engine.model.crds.schema import QUANTITY, Schema, flag, integer, list_of, map_of, object_of, text

_texts, _words = list_of(text()), map_of(text())
_amount = Schema(type="amount", pattern=QUANTITY, what="a quantity", code="KERF306", hint='Write "100Mi" or "2"')
_percent = integer(minimum=0, maximum=100, format="int32")
_count = integer(minimum=0, format="int32")
_duration = text(
    pattern=r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$",
    what="a duration", code="KERF307", hint='Write a Go duration such as "30m", "1h30m" or "1.5s"',
)  # fmt: skip
MAPPED_KEYS: dict[str, Schema] = {
    "clusterDNS": _texts,
    "maxPods": _count,
    "podsPerCore": _count,
    **dict.fromkeys(("systemReserved", "kubeReserved"), _words),
    **dict.fromkeys(("evictionHard", "evictionSoft", "evictionSoftGracePeriod"), _words),
    "evictionMaxPodGracePeriod": _count,
    **dict.fromkeys(("imageGCHighThresholdPercent", "imageGCLowThresholdPercent"), _percent),
    "cpuCFSQuota": flag(),
}
"""The keys that each AMI family has a setting for (A-49); also those of a v1beta1 NodePool (L-126)."""
_OF_TYPE: tuple[tuple[Schema, str], ...] = (
    (
        flag(),
        "enableServer rotateCertificates serverTLSBootstrap enableDebuggingHandlers enableContentionProfiling "
        "cgroupsPerQOS singleProcessOOMKill runOnce serializeImagePulls mergeDefaultEvictionSettings "
        "enableControllerAttachDetach protectKernelDefaults makeIPTablesUtilChains failSwapOn kernelMemcgNotification "
        "enableSystemLogHandler enableSystemLogQuery enableProfilingHandler enableDebugFlagsHandler seccompDefault "
        "registerNode localStorageCapacityIsolation failCgroupV1",
    ),
    (
        text(),
        "apiVersion kind staticPodPath podLogsDir staticPodURL address tlsCertFile tlsPrivateKeyFile tlsMinVersion "
        "imagePullCredentialsVerificationPolicy healthzBindAddress clusterDomain kubeletCgroups systemCgroups "
        "cgroupRoot cgroupDriver cpuManagerPolicy memoryManagerPolicy topologyManagerPolicy topologyManagerScope "
        "hairpinMode podCIDR resolvConf contentType containerLogMaxSize configMapAndSecretChangeDetectionStrategy "
        "reservedSystemCPUs showHiddenMetricsForVersion systemReservedCgroup kubeReservedCgroup volumePluginDir "
        "providerID containerRuntimeEndpoint imageServiceEndpoint memoryReservationPolicy",
    ),
    (
        integer(format="int32"),
        "port readOnlyPort registryPullQPS registryBurst eventRecordQPS eventBurst healthzPort oomScoreAdj "
        "nodeLeaseDurationSeconds nodeStatusMaxImages kubeAPIQPS kubeAPIBurst maxParallelImagePulls "
        "iptablesMasqueradeBit iptablesDropBit containerLogMaxFiles containerLogMaxWorkers",
    ),
    (integer(format="int64"), "podPidsLimit maxOpenFiles"),
    (
        _duration,
        "syncFrequency fileCheckFrequency httpCheckFrequency streamingConnectionIdleTimeout nodeStatusUpdateFrequency "
        "nodeStatusReportFrequency imageMinimumGCAge imageMaximumGCAge volumeStatsAggPeriod cpuManagerReconcilePeriod "
        "runtimeRequestTimeout cpuCFSQuotaPeriod evictionPressureTransitionPeriod containerLogMonitorInterval "
        "shutdownGracePeriod shutdownGracePeriodCriticalPods",
    ),
    (
        _texts,
        "tlsCipherSuites preloadedImagesVerificationAllowlist enforceNodeAllocatable allowedUnsafeSysctls",
    ),
    (
        _words,
        "cpuManagerPolicyOptions topologyManagerPolicyOptions qosReserved evictionMinimumReclaim",
    ),
)
"""The pass-through keys that are no objects, by type."""
_nanoseconds = Schema(
    type="quantity", pattern=_duration.pattern, what=_duration.what, code=_duration.code, hint=_duration.hint
)
_verbosity = integer(minimum=0, maximum=2**32 - 1)
_stream = object_of({"splitStream": flag(), "infoBufferSize": _amount})
_OBJECTS: dict[str, Schema] = {
    "authentication": object_of(
        {
            "x509": object_of({"clientCAFile": text()}),
            "webhook": object_of({"enabled": flag(), "cacheTTL": _duration}),
            "anonymous": object_of({"enabled": flag()}),
        }
    ),
    "authorization": object_of(
        {
            "mode": text(),
            "webhook": object_of({"cacheAuthorizedTTL": _duration, "cacheUnauthorizedTTL": _duration}),
        }
    ),
    "logging": object_of(
        {
            "format": text(),
            "flushFrequency": _nanoseconds,
            "verbosity": _verbosity,
            "vmodule": list_of(object_of({"filePattern": text(), "verbosity": _verbosity})),
            "options": object_of({"text": _stream, "json": _stream}),
        }
    ),
    "tracing": object_of({"endpoint": text(), "samplingRatePerMillion": integer(format="int32")}),
    "memorySwap": object_of({"swapBehavior": text()}),
    "crashLoopBackOff": object_of({"maxContainerRestartPeriod": _duration}),
    "userNamespaces": object_of({"idsPerPod": integer(format="int64")}),
    "reservedMemory": list_of(object_of({"numaNode": integer(format="int32"), "limits": map_of(_amount)})),
    "shutdownGracePeriodByPodPriority": list_of(
        object_of(
            {"priority": integer(format="int32"), "shutdownGracePeriodSeconds": integer(format="int64")},
        )
    ),
    "registerWithTaints": list_of(Schema(type="object", open=True)),  # refused as a whole
}
PASS_THROUGH_KEYS: dict[str, Schema] = {
    **{name: schema for schema, names in _OF_TYPE for name in names.split()},
    **_OBJECTS,
    "staticPodURLHeader": map_of(_texts),
    "tlsCurvePreferences": list_of(integer(format="int32")),
    "featureGates": map_of(flag()),
    "memoryThrottlingFactor": Schema(type="number"),
}
"""All other keys, with the objects within them."""
