{{/*
The worker's configuration: what `config` says, what the chart adds to it, and what the worker takes where neither
says anything (files/defaults.yaml, which the worker itself prints).
*/}}

{{/* A value as YAML of one line. Helm reads large numbers as floats, and would write 1e+06, which is no number of bytes. */}}
{{- define "gpu-worker.flow" -}}
{{- if kindIs "map" . -}}
{
{{- range $i, $key := keys . | sortAlpha -}}
{{ if $i }}, {{ end }}{{ toJson $key }}: {{ include "gpu-worker.flow" (get $ $key) }}
{{- end -}}
}
{{- else if kindIs "slice" . -}}
[
{{- range $i, $item := . -}}
{{ if $i }}, {{ end }}{{ include "gpu-worker.flow" $item }}
{{- end -}}
]
{{- else -}}
{{- include "gpu-worker.scalar" . -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.scalar" -}}
{{- if kindIs "string" . -}}
{{- toJson . -}}
{{- else if not (kindIs "invalid" .) -}}
{{- include "gpu-worker.text" . -}}
{{- end -}}
{{- end -}}

{{/* A number, or a text, as it stands in the values. */}}
{{- define "gpu-worker.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- printf "%.0f" . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{/* What the values of kafka.tls and kafka.sasl mean for librdkafka: for the consumer and the producer. */}}
{{- define "gpu-worker.security" -}}
{{- $tls := .Values.kafka.tls -}}
{{- $sasl := .Values.kafka.sasl -}}
{{- if or $tls.enabled $sasl.secret -}}
security.protocol: {{ empty $sasl.secret | ternary "ssl" ($tls.enabled | ternary "sasl_ssl" "sasl_plaintext") }}
{{- end }}
{{- if $sasl.secret }}
sasl.mechanism: {{ $sasl.mechanism }}
{{- if eq $sasl.mechanism "OAUTHBEARER" }}
sasl.oauthbearer.method: oidc
sasl.oauthbearer.token.endpoint.url: {{ $sasl.tokenEndpoint | quote }}
sasl.oauthbearer.client.id: {file: /etc/gpu-worker/sasl/username}
sasl.oauthbearer.client.secret: {file: /etc/gpu-worker/sasl/password}
{{- with $sasl.scope }}
sasl.oauthbearer.scope: {{ quote . }}
{{- end }}
{{- else }}
sasl.username: {file: /etc/gpu-worker/sasl/username}
sasl.password: {file: /etc/gpu-worker/sasl/password}
{{- end }}
{{- end }}
{{- if and $tls.enabled $tls.secret $tls.caKey }}
ssl.ca.location: /etc/gpu-worker/tls/ca.pem
{{- end }}
{{- if and $tls.enabled $tls.secret $tls.certKey }}
ssl.certificate.location: /etc/gpu-worker/tls/cert.pem
ssl.key.location: /etc/gpu-worker/tls/key.pem
{{- end }}
{{- end -}}

{{/* Puts a setting into a section where the section has none. The argument: section, key, value. */}}
{{- define "gpu-worker.suggest" -}}
{{- if not (get (index . 0) (index . 1)) -}}
{{- $_ := set (index . 0) (index . 1) (index . 2) -}}
{{- end -}}
{{- end -}}

{{/* worker.yaml, as the worker reads it. */}}
{{- define "gpu-worker.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- range list "kafka" "state" "programs" "blobs" "http" -}}
{{- if not (get $config .) }}{{ $_ := set $config . dict }}{{ end -}}
{{- end -}}
{{- if eq .Values.kind "StatefulSet" -}}
{{- include "gpu-worker.suggest" (list $config.kafka "instance_id" "${POD_NAME}") -}}
{{- end -}}
{{- include "gpu-worker.suggest" (list $config.state "dir" "/var/lib/gpu-worker") -}}
{{- if or .Values.programs.configMaps .Values.programs.image .Values.programs.volume -}}
{{- include "gpu-worker.suggest" (list $config.programs "dir" "/etc/gpu-worker/programs") -}}
{{- end -}}
{{- if $config.blobs.url -}}
{{- include "gpu-worker.suggest" (list $config.blobs "cache_dir" "/var/cache/gpu-worker/blobs") -}}
{{- end -}}
{{- if .Values.http.token.secret -}}
{{- include "gpu-worker.suggest" (list $config.http "token_file" "/etc/gpu-worker/http/token") -}}
{{- end -}}
{{- $security := include "gpu-worker.security" . | fromYaml -}}
{{- range $side := list "consumer" "producer" -}}
{{- if $security -}}
{{- $_ := set $config.kafka $side (merge (default dict (get $config.kafka $side)) (deepCopy $security)) -}}
{{- end -}}
{{- end -}}
{{- range $name := keys $config | sortAlpha }}
{{- $value := get $config $name }}
{{- if and (kindIs "map" $value) $value }}
{{ $name }}:
{{- range $key := keys $value | sortAlpha }}
  {{ $key }}: {{ include "gpu-worker.flow" (get $value $key) }}
{{- end }}
{{- else if not (or (kindIs "map" $value) (kindIs "invalid" $value)) }}
{{ $name }}: {{ include "gpu-worker.flow" $value }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The same with the worker's defaults below it: every setting has its value. */}}
{{- define "gpu-worker.settings" -}}
{{- $settings := .Files.Get "files/defaults.yaml" | fromYaml -}}
{{- range $name, $value := include "gpu-worker.config" . | fromYaml -}}
{{- if kindIs "map" $value -}}
{{- range $key, $setting := $value }}{{ $_ := set (get $settings $name) $key $setting }}{{ end -}}
{{- else -}}
{{- $_ := set $settings $name $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* A setting as a whole number of its smallest unit. The argument: its path, its value, and its units. */}}
{{- define "gpu-worker.number" -}}
{{- $text := include "gpu-worker.text" (index . 1) -}}
{{- $digits := regexFind "^[0-9]+" $text -}}
{{- $factor := get (index . 2) (trimPrefix $digits $text) -}}
{{- if or (not $digits) (not $factor) -}}
{{- fail (printf "config.%s is '%s': the chart computes from it, so write a number there, and no variable" (index . 0) $text) -}}
{{- end -}}
{{- mul (int64 $digits) $factor -}}
{{- end -}}

{{- define "gpu-worker.milliseconds" -}}
{{- include "gpu-worker.number" (list (index . 0) (index . 1) (dict "ms" 1 "" 1 "s" 1000 "m" 60000 "h" 3600000)) -}}
{{- end -}}

{{- define "gpu-worker.bytes" -}}
{{- include "gpu-worker.number" (list (index . 0) (index . 1) (dict "" 1 "KiB" 1024 "MiB" 1048576 "GiB" 1073741824 "TiB" 1099511627776)) -}}
{{- end -}}

{{- define "gpu-worker.count" -}}
{{- include "gpu-worker.number" (list (index . 0) (index . 1) (dict "" 1)) -}}
{{- end -}}
