{{- define "kerf.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- default (ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name)) .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "kerf.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "kerf.metadata" -}}
namespace: {{ .Release.Namespace }}
{{ include "kerf.labels" . }}
{{- end -}}

{{- define "kerf.labels" -}}
labels:
  {{- include "kerf.selector" . | nindent 2 }}
  app.kubernetes.io/managed-by: {{ .Release.Service }}
  helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
  {{- with .Values.additionalLabels }}{{ toYaml . | nindent 2 }}{{ end }}
{{- with .Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "kerf.serviceAccount" -}}
{{- ternary (default (include "kerf.fullname" .) .Values.serviceAccount.name) (default "default" .Values.serviceAccount.name) .Values.serviceAccount.create -}}
{{- end -}}

{{- define "kerf.image" -}}
{{- if regexMatch "karpenter/" .Values.controller.image.repository -}}
{{- fail "controller.image: this is Karpenter's; give kerf's own repository, tag and digest, as empty texts what it has not" -}}
{{- end -}}
{{- with .Values.controller.image -}}
{{ .repository }}:{{ default $.Chart.Version .tag }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/* One writer on one volume, and one observer: only PostgreSQL lets a second replica wait. */}}
{{- define "kerf.replicas" -}}
{{- $most := ternary 2 1 (and (ne .Values.store.postgres.existingSecret "") (eq .Values.mode "control")) -}}
{{- if and .Values.replicas (gt (int .Values.replicas) 1) (eq $most 1) -}}
{{- fail "replicas: more than one needs mode=control and store.postgres.existingSecret. With SQLite say replicas=1" -}}
{{- end -}}
{{- if kindIs "invalid" .Values.replicas }}{{ $most }}{{ else }}{{ .Values.replicas }}{{ end -}}
{{- end -}}

{{- define "kerf.provider" -}}
{{- required "provider: where nodes come from: --set provider=aws, or provider=kwok for nodes without machines" .Values.provider -}}
{{- end -}}

{{- define "kerf.pullPolicy" -}}
{{- coalesce .Values.controller.imagePullPolicy .Values.imagePullPolicy "IfNotPresent" -}}
{{- end -}}

{{/* Values of Karpenter's chart that were given and that kerf has no use for: a line each, with the reason. */}}
{{- define "kerf.unused" -}}
{{- $fixed := "kerf's container runs as 65532, without rights, on a read-only root" -}}
{{- $noHooks := "kerf has no webhooks" -}}
{{- $logs := "errors go where logOutputPaths says; logLevel sets the level" -}}
{{- $why := dict
  "service" "the Service for metrics has no settings; additionalAnnotations annotates it"
  "webhook" $noHooks
  "logConfig" $logs
  "logEncoding" "the log is JSON"
  "logErrorOutputPaths" $logs
  "controller.containerName" "the container is named controller"
  "controller.securityContext" $fixed
  "controller.errorLogLevel" $logs
  "settings.assumeRoleARN" "the pod has its role by Pod Identity or IRSA; Karpenter dropped it, too"
  "settings.assumeRoleDuration" "the pod has its role by Pod Identity or IRSA; Karpenter dropped it, too"
  "settings.cpuRequests" "kerf is one thread, and sizes nothing by it"
  "settings.memoryLimit" "it was for Go's garbage collector"
  "settings.disableControllerWarmup" "a replica without the Lease does not watch"
  "settings.enableProfiling" "kerf has no profiling port: attach py-spy"
  "settings.karpenterService" "it was for the webhooks"
  "settings.logErrorOutputPaths" $logs
  "settings.featureGates.drift" "drift is always on"
-}}
{{- $values := .Values.AsMap -}}
{{- range $path, $reason := $why }}
{{- $at := splitList "." $path }}
{{- $value := $values }}
{{- range $at }}{{ $value = kindIs "map" $value | ternary (get (kindIs "map" $value | ternary $value dict) .) nil }}{{ end }}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
- {{ $path }}: {{ $reason }}
{{- end }}
{{- end }}
{{- end -}}

{{/* On AWS all that kerf makes is tagged with the cluster's name; it may come by the environment, too. */}}
{{- define "kerf.clusterName" -}}
{{- $named := or .Values.settings.clusterName .Values.controller.envFrom -}}
{{- range .Values.controller.env }}{{ if eq .name "CLUSTER_NAME" }}{{ $named = true }}{{ end }}{{ end -}}
{{- if and (eq .Values.provider "aws") (not $named) -}}
{{- fail "settings.clusterName: provider=aws needs the cluster's name" -}}
{{- end -}}
{{- end -}}

{{- define "kerf.env" -}}
{{- include "kerf.clusterName" . -}}
- name: KERF_MODE
  value: {{ .Values.mode }}
- name: KERF_PROVIDER
  value: {{ include "kerf.provider" . }}
- name: KERF_STORE
{{- if .Values.store.postgres.existingSecret }}
  valueFrom:
    secretKeyRef:
      name: {{ .Values.store.postgres.existingSecret }}
      key: {{ .Values.store.postgres.key }}
{{- else }}
  value: sqlite:///var/lib/kerf/record.kerf
{{- end }}
- name: METRICS_PORT
  value: {{ .Values.controller.metrics.port | quote }}
- name: HEALTH_PROBE_PORT
  value: {{ .Values.controller.healthProbe.port | quote }}
- name: LEADER_ELECTION_NAMESPACE
  value: {{ default .Release.Namespace .Values.leaderElectionNamespace }}
- name: LOG_LEVEL
  value: {{ .Values.logLevel }}
- name: LOG_OUTPUT_PATHS
  value: {{ join "," .Values.logOutputPaths }}
{{- $gates := list }}
{{- range $name, $on := .Values.settings.featureGates }}
{{- $gates = append $gates (printf "%s=%t" (title $name) $on) }}
{{- end }}
- name: FEATURE_GATES
  value: {{ join "," $gates }}
{{- with .Values.settings.awsFeatureGates }}
- name: AWS_FEATURE_GATES
  value: {{ printf "NodeClassCEL=%t" (default false .nodeClassCEL) }}
{{- end }}
{{- $names := dict "clusterCABundle" "CLUSTER_CA_BUNDLE" "isolatedVPC" "ISOLATED_VPC" "reservedENIs" "RESERVED_ENIS" "ignoreDRARequests" "IGNORE_DRA_REQUESTS" "kubeClientQPS" "KUBE_CLIENT_QPS" "eksControlPlane" "EKS_CONTROL_PLANE" }}
{{- range $name, $value := omit .Values.settings "featureGates" "awsFeatureGates" "assumeRoleARN" "assumeRoleDuration" }}
{{- if not (or (kindIs "invalid" $value) (eq (toString $value) "")) }}
- name: {{ get $names $name | default ($name | snakecase | upper) }}
  value: {{ kindIs "map" $value | ternary (toJson $value) (toString $value) | quote }}
{{- end }}
{{- end }}
{{- with .Values.controller.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The explorer's container. SQLite's readers write into the file ending in -shm, so its volume is no read-only mount. */}}
{{- define "kerf.explorer" -}}
{{- $sqlite := not .Values.store.postgres.existingSecret -}}
- name: explorer
  image: {{ include "kerf.image" . }}
  imagePullPolicy: {{ include "kerf.pullPolicy" . }}
  args: [ui, --tokens, cluster, --port, {{ .Values.explorer.port | quote }}]
  env:
    - name: KERF_STORE
    {{- if $sqlite }}
      value: sqlite:///var/lib/kerf/record.kerf
    {{- else }}
      valueFrom:
        secretKeyRef:
          name: {{ default .Values.store.postgres.existingSecret .Values.explorer.postgres.existingSecret }}
          key: {{ default .Values.store.postgres.key .Values.explorer.postgres.key }}
    {{- end }}
    {{- with .Values.explorer.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - name: explorer
      containerPort: {{ .Values.explorer.port }}
  resources:
    {{- toYaml .Values.explorer.resources | nindent 4 }}
  securityContext:
    runAsUser: 65532
    runAsGroup: 65532
    runAsNonRoot: true
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
    seccompProfile:
      type: RuntimeDefault
  volumeMounts:
    - name: explorer-tmp
      mountPath: /tmp
    {{- if $sqlite }}
    - name: record
      mountPath: /var/lib/kerf
    - name: explorer-token
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
    {{- end }}
{{- end -}}
