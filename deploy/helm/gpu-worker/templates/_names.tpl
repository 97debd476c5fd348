{{- define "gpu-worker.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 46 characters, so that what is appended, and a pod's ordinal, still fit into a label. */}}
{{- define "gpu-worker.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $full .Values.fullnameOverride | trunc 46 | trimSuffix "-" -}}
{{- end -}}

{{- define "gpu-worker.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "gpu-worker.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{/* What never changes in a release, because a workload's selector cannot. */}}
{{- define "gpu-worker.selector" -}}
app.kubernetes.io/name: {{ include "gpu-worker.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gpu-worker.labels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "gpu-worker.name" $root }}{{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/*
The metadata of every object, and the first that an object says: values that cannot work are refused here. The argument
is a list: the root, and what is appended to the name. An object with a name of its own is none of the workers, which a
disruption budget and a PodMonitor go by.
*/}}
{{- define "gpu-worker.metadata" -}}
{{- $root := index . 0 -}}
{{- include "gpu-worker.refusals" $root -}}
name: {{ include "gpu-worker.fullname" $root }}{{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "gpu-worker.labels" . | nindent 2 }}
{{- end -}}
