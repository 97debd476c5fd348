{{/* Values that a schema cannot refuse, each with what to do about it. */}}

{{/* A secret may be named, by variables without a default, or by a file. */}}
{{- define "gpu-worker.refuseSecrets" -}}
{{- $words := "(?i)password|secret|passphrase|token|credential|key[.]pem|oauthbearer[.]config" -}}
{{- $named := "([$][{][A-Za-z_][A-Za-z0-9_]*[}])+$" -}}
{{- range $side := list "consumer" "producer" -}}
{{- range $key, $value := get (default dict $.Values.config.kafka) $side | default dict -}}
{{- $plain := not (or (kindIs "invalid" $value) (kindIs "map" $value) (regexMatch (print "^" $named) (toString $value))) -}}
{{- if and (regexMatch $words $key) (not (hasSuffix ".url" $key)) $plain -}}
{{- fail (printf "config.kafka.%s has %s in plain text, and a ConfigMap is no place for it: name a Secret in kafka.sasl or kafka.tls, or write {file: path}" $side $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $urls := dict "config.blobs.url" (get (default dict .Values.config.blobs) "url") "config.tracing.otlp_url" (get (default dict .Values.config.tracing) "otlp_url") "kafka.sasl.tokenEndpoint" .Values.kafka.sasl.tokenEndpoint -}}
{{- range $side := list "consumer" "producer" -}}
{{- range $key, $value := get (default dict $.Values.config.kafka) $side | default dict -}}
{{- if hasSuffix ".url" $key }}{{ $_ := set $urls (printf "config.kafka.%s.%s" $side $key) $value }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range $path, $url := $urls -}}
{{- $user := regexFind "://[^/]*@" (toString $url) | trimPrefix "://" | trimSuffix "@" -}}
{{- if and $user (not (regexMatch (print "^([^:]*:)?" $named) $user)) -}}
{{- fail (printf "%s carries a password, and a ConfigMap is no place for it: take the URL from a Secret, with env and ${NAME}" $path) -}}
{{- end -}}
{{- if contains "?" (toString $url) -}}
{{- fail (printf "%s has a query, which may be a secret: write it without" $path) -}}
{{- end -}}
{{- end -}}
{{- range .Values.env -}}
{{- $secret := and (regexMatch $words .name) (not (regexMatch "(?i)(file|path|dir|url|endpoint|location|name)$" .name)) -}}
{{- if and $secret .value (not (regexMatch "^[$][(][A-Za-z0-9_.-]+[)]$" (toString .value))) -}}
{{- fail (printf "env.%s is in plain text: take it from a Secret, with valueFrom.secretKeyRef" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.refuseImage" -}}
{{- if not .Values.image.repository -}}
{{- $image := printf "REGISTRY/gpu-worker:%s" (default .Chart.AppVersion .Values.image.tag) -}}
{{- fail (printf "image.repository is empty: build the image and push it to a registry of yours:\n  docker build -f deploy/container/Dockerfile -t %s .\n  docker push %s\nand add --set image.repository=REGISTRY/gpu-worker" $image $image) -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.refuseKafka" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- $given := default dict .Values.config.kafka -}}
{{- if eq $settings.broker "embedded" -}}
{{- fail "config.broker is embedded, which cannot be reached from outside the pod: use kafka" -}}
{{- end -}}
{{- if not (get $given "bootstrap_servers") -}}
{{- fail "config.kafka.bootstrap_servers is missing: name the brokers, host:port, by commas" -}}
{{- end -}}
{{- if not (kindIs "string" $settings.kafka.instance_id) -}}
{{- fail "config.kafka.instance_id comes from a file, and would be the same in every pod: leave it out" -}}
{{- end -}}
{{- range $side := list "consumer" "producer" -}}
{{- range $key, $value := include "gpu-worker.security" $ | fromYaml -}}
{{- if hasKey (default dict (get $given $side)) $key -}}
{{- fail (printf "config.kafka.%s sets %s, and so do kafka.tls and kafka.sasl: remove one of them" $side $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $tls := .Values.kafka.tls -}}
{{- if and $tls.secret (not $tls.enabled) -}}
{{- fail "kafka.tls.secret is set, and kafka.tls.enabled is not: the brokers would be spoken to in plain text" -}}
{{- end -}}
{{- if ne (empty $tls.certKey) (empty $tls.keyKey) -}}
{{- fail "kafka.tls.certKey and kafka.tls.keyKey go together: set both or none" -}}
{{- end -}}
{{- $sasl := .Values.kafka.sasl -}}
{{- if and $sasl.tokenEndpoint (not $sasl.secret) -}}
{{- fail "kafka.sasl.tokenEndpoint is set, and kafka.sasl.secret is not: name the Secret with the client's id and secret" -}}
{{- end -}}
{{- if and $sasl.tokenEndpoint (ne $sasl.mechanism "OAUTHBEARER") -}}
{{- fail (printf "kafka.sasl.tokenEndpoint is for OAUTHBEARER alone, and kafka.sasl.mechanism is %s: change one of them" $sasl.mechanism) -}}
{{- end -}}
{{- if and $sasl.secret (eq $sasl.mechanism "OAUTHBEARER") (not $sasl.tokenEndpoint) -}}
{{- fail "kafka.sasl.mechanism is OAUTHBEARER, which needs kafka.sasl.tokenEndpoint: the URL that gives tokens" -}}
{{- end -}}
{{- $named := contains "${POD_NAME}" $settings.kafka.instance_id -}}
{{- if and $settings.kafka.instance_id (not $named) (gt (include "gpu-worker.replicasMax" . | int64) 1) -}}
{{- fail (printf "config.kafka.instance_id is '%s' in every pod, and of two members of one name the earlier ends: leave it out, or write ${POD_NAME}" $settings.kafka.instance_id) -}}
{{- end -}}
{{- if and $named (eq .Values.kind "Deployment") -}}
{{- fail "config.kafka.instance_id names the pods of a Deployment, which have a new name after each restart: use kind: StatefulSet, or leave it out" -}}
{{- end -}}
{{- end -}}

{{/* What the chart tells others has to stand in the values. */}}
{{- define "gpu-worker.refuseVariables" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- $told := dict "kafka.bootstrap_servers" $settings.kafka.bootstrap_servers "kafka.group" $settings.kafka.group "topics" $settings.topics "blobs.url" $settings.blobs.url "tracing.otlp_url" $settings.tracing.otlp_url -}}
{{- range $path, $value := $told -}}
{{- $text := toJson $value -}}
{{- range $reader := list "keda" "networkPolicy" "topics.create" -}}
{{- $on := eq $reader "topics.create" | ternary $.Values.topics.create.enabled (get $.Values $reader | default dict).enabled -}}
{{- if and $on (or (contains "${" $text) (contains "{\"file\":" $text)) -}}
{{- fail (printf "config.%s comes from the environment or a file, where %s cannot look: write it out" $path $reader) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.refuseReplicas" -}}
{{- if and .Values.keda.enabled .Values.hpa.enabled -}}
{{- fail "keda.enabled and hpa.enabled are both on: KEDA makes an HPA of its own, and two would undo each other's work; turn one off" -}}
{{- end -}}
{{- range $name := list "keda" "hpa" -}}
{{- $scaler := get $.Values $name -}}
{{- if and $scaler.enabled (not $.Values.topics.partitions) -}}
{{- fail (printf "%s.enabled needs topics.partitions: more pods than partitions would be idle" $name) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.keda.enabled (not (include "gpu-worker.lagThreshold" .)) -}}
{{- fail "keda.enabled needs keda.jobsPerSecond, the jobs that a pod finishes in a second: a pod is started for each keda.targetWaitSeconds of them that wait; or set keda.lagThreshold" -}}
{{- end -}}
{{- if and .Values.hpa.enabled (not .Values.hpa.metrics) -}}
{{- fail "hpa.metrics is empty: an HPA would scale by the CPU, which says nothing of GPU jobs; name a metric of the lag, or use keda" -}}
{{- end -}}
{{- if .Capabilities.APIVersions.Has "autoscaling/v2" -}}
{{- $full := include "gpu-worker.fullname" . -}}
{{- $hpas := lookup "autoscaling/v2" "HorizontalPodAutoscaler" .Release.Namespace "" -}}
{{- range get $hpas "items" | default list -}}
{{- $ours := or (eq .metadata.name (printf "keda-hpa-%s" $full)) (eq .metadata.name $full) -}}
{{- if and $.Values.keda.enabled (eq .spec.scaleTargetRef.name $full) (not $ours) -}}
{{- fail (printf "keda.enabled is on, and the HPA %s scales %s as well: remove it first" .metadata.name $full) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $pods := include "gpu-worker.replicasMax" . | int64 -}}
{{- $executors := include "gpu-worker.executors" . | int64 -}}
{{- if and (not .Values.topics.partitions) (gt (mul $pods $executors) 1) -}}
{{- fail (printf "%d executors need topics.partitions: say how many partitions each job topic has" (mul $pods $executors)) -}}
{{- end -}}
{{- if and .Values.topics.partitions (eq (include "gpu-worker.podsMax" .) "0") -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- $partitions := mul .Values.topics.partitions (len $settings.topics.jobs) -}}
{{- $fewer := eq $settings.driver "cpu" | ternary "config.cpu_driver.devices" "gpu.count" -}}
{{- if kindIs "slice" $settings.devices }}{{ $fewer = "gpu.count and shorten config.devices" }}{{ end -}}
{{- fail (printf "a pod has %d executors, and the job topics have %d partitions in all, so that an executor would be idle: create %d partitions or more, and say so in topics.partitions, or lower %s" $executors $partitions $executors $fewer) -}}
{{- end -}}
{{- if and .Values.topics.partitions (gt $pods (include "gpu-worker.podsMax" . | int64)) -}}
{{- fail (printf "%d pods with %d executors each are more than the job topics have partitions for: at most %s pods, or more topics.partitions" $pods $executors (include "gpu-worker.podsMax" .)) -}}
{{- end -}}
{{- if and .Values.keda.enabled (gt (int64 .Values.keda.minReplicas) $pods) -}}
{{- fail (printf "keda.minReplicas is more than the %d pods that there may be" $pods) -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.refuseGpu" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- $gpu := .Values.gpu -}}
{{- $cuda := eq $settings.driver "cuda" -}}
{{- if and $cuda (kindIs "slice" $settings.devices) (gt (len $settings.devices) (int64 $gpu.count)) -}}
{{- fail (printf "config.devices lists %d GPUs, and gpu.count gives a pod %d: raise gpu.count, or write devices: all" (len $settings.devices) (int64 $gpu.count)) -}}
{{- end -}}
{{- if and (gt (int64 $gpu.count) 1) (contains "/mig-" $gpu.resource) (not $gpu.dra.enabled) -}}
{{- fail (printf "gpu.count is %d, and a process sees one MIG slice alone: use gpu.count: 1 and more pods" (int64 $gpu.count)) -}}
{{- end -}}
{{- if and (gt (int64 $gpu.count) 1) (hasSuffix ".shared" $gpu.resource) (not $gpu.dra.enabled) -}}
{{- fail (printf "gpu.count is %d, and several shares may be of one GPU: use gpu.count: 1 and more pods" (int64 $gpu.count)) -}}
{{- end -}}
{{- if and $gpu.dra.enabled (semverCompare "<1.34.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "gpu.dra needs Kubernetes 1.34, and this is %s: use gpu.resource" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.refuseHttp" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- $listen := $settings.http.listen -}}
{{- if not (kindIs "string" $listen) -}}
{{- fail "config.http.listen comes from a file: write it out, because the chart computes from it" -}}
{{- end -}}
{{- $host := regexReplaceAll ":[^:]*$" $listen "" -}}
{{- range $name := list "probes" "podMonitor" -}}
{{- if (get $.Values $name).enabled -}}
{{- if not (include "gpu-worker.port" $) -}}
{{- fail (printf "%s.enabled needs a port, and config.http.listen is '%s': write 0.0.0.0:9400, or turn %s off" $name $listen $name) -}}
{{- end -}}
{{- if not (has $host (list "0.0.0.0" "[::]" "${POD_IP}")) -}}
{{- fail (printf "%s.enabled needs a port that can be reached from outside of the pod, and config.http.listen is %s: write 0.0.0.0:%s, or turn %s off" $name $listen (include "gpu-worker.port" $) $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.refuseVolumes" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- if and .Values.http.token.secret (ne (toString $settings.http.token_file) "/etc/gpu-worker/http/token") -}}
{{- fail "config.http.token_file is set, and so is http.token.secret: remove one of them" -}}
{{- end -}}
{{- $sources := list -}}
{{- range list .Values.programs.configMaps .Values.programs.image .Values.programs.volume -}}
{{- if . }}{{ $sources = append $sources . }}{{ end -}}
{{- end -}}
{{- if gt (len $sources) 1 -}}
{{- fail "programs come from one place: set programs.configMaps, programs.image or programs.volume alone" -}}
{{- end -}}
{{- if and .Values.programs.image (semverCompare "<1.33.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "programs.image needs Kubernetes 1.33, and this is %s: use programs.volume" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and .Values.state.claim.enabled (ne .Values.kind "StatefulSet") -}}
{{- fail "state.claim.enabled needs kind: StatefulSet, because each pod needs a claim of its own" -}}
{{- end -}}
{{- if $settings.blobs.dir -}}
{{- $covered := false -}}
{{- range .Values.extraVolumeMounts -}}
{{- if hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) (printf "%s/" $settings.blobs.dir) }}{{ $covered = true }}{{ end -}}
{{- end -}}
{{- if not $covered -}}
{{- fail (printf "config.blobs.dir is %s, and no volume is mounted there: add one to extraVolumes and extraVolumeMounts" $settings.blobs.dir) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.refuseNetwork" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- if .Values.networkPolicy.enabled -}}
{{- if not .Values.networkPolicy.brokers -}}
{{- fail "networkPolicy.brokers is empty: say where the brokers are, such as [{ipBlock: {cidr: 10.1.0.0/16}}]" -}}
{{- end -}}
{{- if and $settings.blobs.url (not .Values.networkPolicy.blobStore) -}}
{{- fail "networkPolicy.blobStore is empty, and config.blobs.url is set: say where the blob store is" -}}
{{- end -}}
{{- if and .Values.kafka.sasl.tokenEndpoint (not .Values.networkPolicy.identityProvider) -}}
{{- fail "networkPolicy.identityProvider is empty, and kafka.sasl.tokenEndpoint is set: say where that is" -}}
{{- end -}}
{{- if and .Values.podMonitor.enabled (not .Values.networkPolicy.scrapers) -}}
{{- fail "networkPolicy.scrapers is empty, and podMonitor.enabled is on: say where Prometheus is, such as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]" -}}
{{- end -}}
{{- if and .Values.networkPolicy.scrapers (not (include "gpu-worker.port" .)) -}}
{{- fail (printf "networkPolicy.scrapers is set, and config.http.listen is '%s': write 0.0.0.0:9400, or leave scrapers out" $settings.http.listen) -}}
{{- end -}}
{{- if and $settings.tracing.otlp_url (not .Values.networkPolicy.collector) -}}
{{- fail "networkPolicy.collector is empty, and config.tracing.otlp_url is set: say where the collector is" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.refuseRules" -}}
{{- $rule := .Values.prometheusRule -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- if $rule.enabled -}}
{{- if not $rule.runbookUrl -}}
{{- fail "prometheusRule.runbookUrl is empty: say where your people read deploy/README.md, such as https://git.example/gpu-worker/deploy/README.md" -}}
{{- end -}}
{{- $sleeps := and .Values.keda.enabled (eq (int64 .Values.keda.minReplicas) 0) -}}
{{- if and $sleeps (eq $rule.noWorker "absent") -}}
{{- fail "prometheusRule.noWorker is absent, and KEDA may leave no worker where there are no jobs: use keda or kafka-exporter, whichever Prometheus reads" -}}
{{- end -}}
{{- if and (eq $rule.noWorker "keda") (not (and .Values.keda.enabled .Values.podMonitor.enabled)) -}}
{{- fail "prometheusRule.noWorker is keda, which needs keda.enabled and podMonitor.enabled" -}}
{{- end -}}
{{- if and (eq $rule.noWorker "kafka-exporter") (contains "${" (toJson $settings.kafka.group)) -}}
{{- fail "config.kafka.group comes from the environment, where prometheusRule cannot look: write it out" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.refuseTopics" -}}
{{- if and .Values.serviceAccount.annotations (not .Values.serviceAccount.create) -}}
{{- fail "serviceAccount.annotations are for an account that the chart creates: annotate yours, or set serviceAccount.create" -}}
{{- end -}}
{{- if .Values.topics.create.enabled -}}
{{- if not .Values.topics.create.image -}}
{{- fail "topics.create.image is empty: name an image with Kafka's tools, because the worker's has none" -}}
{{- end -}}
{{- if not .Values.topics.partitions -}}
{{- fail "topics.create.enabled needs topics.partitions" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "gpu-worker.refusals" -}}
{{- range list "Image" "Secrets" "Variables" "Kafka" "Replicas" "Gpu" "Http" "Volumes" "Network" "Rules" "Topics" -}}
{{- include (printf "gpu-worker.refuse%s" .) $ -}}
{{- end -}}
{{- end -}}
