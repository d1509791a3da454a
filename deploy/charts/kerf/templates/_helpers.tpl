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
{{- with .Values.controller.image -}}
{{ .repository }}:{{ default $.Chart.Version .tag }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/* One writer on one volume, and one observer: only PostgreSQL lets a second replica wait. */}}
{{- define "kerf.replicas" -}}
{{- $most := ternary 2 1 (and (ne .Values.store.postgres.existingSecret "") (eq .Values.mode "control")) -}}
{{- if and .Values.replicas (gt (int .Values.replicas) 1) (eq $most 1) -}}
{{- fail "replicas: more than one needs mode=control and store.postgres.existingSecret" -}}
{{- end -}}
{{- if kindIs "invalid" .Values.replicas }}{{ $most }}{{ else }}{{ .Values.replicas }}{{ end -}}
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
  value: {{ .Values.provider }}
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
{{- $names := dict "clusterCABundle" "CLUSTER_CA_BUNDLE" "isolatedVPC" "ISOLATED_VPC" "reservedENIs" "RESERVED_ENIS" "ignoreDRARequests" "IGNORE_DRA_REQUESTS" "kubeClientQPS" "KUBE_CLIENT_QPS" "eksControlPlane" "EKS_CONTROL_PLANE" }}
{{- range $name, $value := omit .Values.settings "featureGates" }}
{{- if not (kindIs "invalid" $value) }}
- name: {{ get $names $name | default ($name | snakecase | upper) }}
  value: {{ kindIs "map" $value | ternary (toJson $value) (toString $value) | quote }}
{{- end }}
{{- end }}
{{- with .Values.controller.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}
