{{/* Variables that `config` may name. */}}
{{- define "gpu-worker.env" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- {name: CUDA_CACHE_PATH, value: /var/cache/gpu-worker/cuda}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gpu-worker.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .Values.securityContext.runAsUser | int64 }}
runAsGroup: {{ .Values.securityContext.runAsUser | int64 }}
fsGroup: {{ .Values.securityContext.runAsUser | int64 }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "gpu-worker.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* What the worker and the test pod see: the configuration, secrets and programs, and folders to write in. */}}
{{- define "gpu-worker.mounts" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
- {name: config, mountPath: /etc/gpu-worker/config, readOnly: true}
- {name: state, mountPath: {{ $settings.state.dir | quote }}}
- {name: cache, mountPath: /var/cache/gpu-worker}
{{- if and $settings.blobs.url (not (hasPrefix "/var/cache/gpu-worker/" $settings.blobs.cache_dir)) }}
- {name: blobs, mountPath: {{ $settings.blobs.cache_dir | quote }}}
{{- end }}
- {name: tmp, mountPath: /tmp}
{{- if .Values.kafka.sasl.secret }}
- {name: sasl, mountPath: /etc/gpu-worker/sasl, readOnly: true}
{{- end }}
{{- if .Values.http.token.secret }}
- {name: http, mountPath: /etc/gpu-worker/http, readOnly: true}
{{- end }}
{{- if .Values.kafka.tls.secret }}
- {name: tls, mountPath: /etc/gpu-worker/tls, readOnly: true}
{{- end }}
{{- range .Values.programs.configMaps }}
- {name: {{ printf "program-%s" (.name | lower | replace "_" "-" | replace "." "-") }}, mountPath: {{ printf "%s/%s" $settings.programs.dir .name | quote }}, readOnly: true}
{{- end }}
{{- if or .Values.programs.image .Values.programs.volume }}
- {name: programs, mountPath: {{ $settings.programs.dir | quote }}, readOnly: true}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The certificates as files of the names that `config` has. */}}
{{- define "gpu-worker.tlsItems" -}}
{{- with .Values.kafka.tls -}}
{{- if .caKey }}
- {key: {{ .caKey | quote }}, path: ca.pem}
{{- end }}
{{- if .certKey }}
- {key: {{ .certKey | quote }}, path: cert.pem}
- {key: {{ .keyKey | quote }}, path: key.pem}
{{- end }}
{{- end -}}
{{- end -}}

{{/* The Secrets alone: the Job that makes topics needs them, too. */}}
{{- define "gpu-worker.secretVolumes" -}}
{{- with .Values.kafka.sasl -}}
{{- if .secret }}
- name: sasl
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    items:
      - {key: {{ .usernameKey | quote }}, path: username}
      - {key: {{ .passwordKey | quote }}, path: password}
{{- end }}
{{- end -}}
{{- if .Values.kafka.tls.secret }}
- name: tls
  secret:
    secretName: {{ .Values.kafka.tls.secret }}
    defaultMode: 0440
    items:
      {{- include "gpu-worker.tlsItems" . | trim | nindent 6 }}
{{- end }}
{{- end -}}

{{- define "gpu-worker.volumes" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- $kept := include "gpu-worker.bytes" (list "blobs.cache_bytes" $settings.blobs.cache_bytes) | int64 -}}
{{- $cached := $settings.blobs.url | empty | ternary 0 $kept -}}
- name: config
  configMap: {name: {{ include "gpu-worker.fullname" . }}}
- name: cache
  emptyDir: {sizeLimit: {{ add 1024 (div (add $cached 1048575) 1048576) }}Mi}
{{- if and $settings.blobs.url (not (hasPrefix "/var/cache/gpu-worker/" $settings.blobs.cache_dir)) }}
- name: blobs
  emptyDir: {sizeLimit: {{ add 1024 (div (add $cached 1048575) 1048576) }}Mi}
{{- end }}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- include "gpu-worker.secretVolumes" . }}
{{- with .Values.http.token }}
{{- if .secret }}
- name: http
  secret:
    secretName: {{ .secret }}
    defaultMode: 0440
    items:
      - {key: {{ .key | quote }}, path: token}
{{- end }}
{{- end }}
{{- range .Values.programs.configMaps }}
- name: {{ printf "program-%s" (.name | lower | replace "_" "-" | replace "." "-") }}
  configMap: {name: {{ .configMap }}}
{{- end }}
{{- if .Values.programs.image }}
- name: programs
  image: {reference: {{ .Values.programs.image | quote }}, pullPolicy: IfNotPresent}
{{- end }}
{{- with .Values.programs.volume }}
- name: programs
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "gpu-worker.resources" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
requests:
  cpu: {{ .Values.resources.cpu | quote }}
  memory: {{ include "gpu-worker.memory" . }}
limits:
  memory: {{ include "gpu-worker.memory" . }}
  {{- if and (eq $settings.driver "cuda") (not .Values.gpu.dra.enabled) }}
  {{ .Values.gpu.resource }}: {{ .Values.gpu.count | int64 }}
  {{- end }}
{{- if and (eq $settings.driver "cuda") .Values.gpu.dra.enabled }}
claims:
  - {name: gpu}
{{- end }}
{{- end -}}

{{- define "gpu-worker.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: {{ max 1 (div (add (int64 .Values.probes.startupSeconds) 1) 2) }}
livenessProbe:
  httpGet: {path: /livez, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}

{{/* The pod of a Deployment or StatefulSet. */}}
{{- define "gpu-worker.pod" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
metadata:
  labels:
    {{- include "gpu-worker.labels" (list . "") | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "gpu-worker.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "gpu-worker.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ include "gpu-worker.grace" . }}
  securityContext:
    {{- include "gpu-worker.podSecurity" . | nindent 4 }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.gpu.runtimeClassName }}
  runtimeClassName: {{ . }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if and (eq $settings.driver "cuda") .Values.gpu.dra.enabled }}
  resourceClaims:
    - {name: gpu, resourceClaimTemplateName: {{ include "gpu-worker.fullname" . }}}
  {{- end }}
  {{- range $key := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
  {{- with get $.Values $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with .Values.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: worker
      image: {{ include "gpu-worker.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      command: [gpu-worker, run, --config, /etc/gpu-worker/config/worker.yaml]
      env:
        {{- include "gpu-worker.env" . | nindent 8 }}
      securityContext:
        {{- include "gpu-worker.containerSecurity" . | nindent 8 }}
      resources:
        {{- include "gpu-worker.resources" . | nindent 8 }}
      {{- with include "gpu-worker.port" . }}
      ports:
        - {name: http, containerPort: {{ . }}, protocol: TCP}
      {{- end }}
      {{- if .Values.probes.enabled }}
      {{- include "gpu-worker.probes" . | nindent 6 }}
      {{- end }}
      volumeMounts:
        {{- include "gpu-worker.mounts" . | nindent 8 }}
    {{- with .Values.sidecars }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    {{- include "gpu-worker.volumes" . | nindent 4 }}
    {{- if not .Values.state.claim.enabled }}
    - name: state
      emptyDir: {sizeLimit: {{ .Values.state.sizeLimit }}}
    {{- end }}
{{- end -}}
