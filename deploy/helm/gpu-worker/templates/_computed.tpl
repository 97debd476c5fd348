{{/* What follows from the worker's configuration. */}}

{{/* 10 s more than running jobs may take to finish: a worker that is killed has its last jobs run again. */}}
{{- define "gpu-worker.grace" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- $drain := include "gpu-worker.milliseconds" (list "drain_timeout_ms" $settings.drain_timeout_ms) | int64 -}}
{{- add (div (add $drain 999) 1000) 10 -}}
{{- end -}}

{{/* The port of http.listen; empty if it does not listen. */}}
{{- define "gpu-worker.port" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- regexFind "[0-9]+$" $settings.http.listen -}}
{{- end -}}

{{/* Executors of a pod: each is a member of the group. */}}
{{- define "gpu-worker.executors" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- if kindIs "slice" $settings.devices -}}
{{- len $settings.devices -}}
{{- else if eq $settings.driver "cpu" -}}
{{- include "gpu-worker.count" (list "cpu_driver.devices" $settings.cpu_driver.devices) -}}
{{- else -}}
{{- .Values.gpu.count | int64 -}}
{{- end -}}
{{- end -}}

{{/* The alerts of deploy/observability with the names of this release; a PodMonitor makes the job of a metric namespace/name. */}}
{{- define "gpu-worker.alerts" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- $full := include "gpu-worker.fullname" . -}}
{{- .Files.Get "files/alerts.yaml"
    | replace "https://gpu-worker.example/deploy/README.md" .Values.prometheusRule.runbookUrl
    | replace "consumergroup=\"gpu-worker\"" (printf "consumergroup=%q" $settings.kafka.group)
    | replace "scaledObject=\"gpu-worker\"" (printf "scaledObject=%q" $full)
    | replace "job=\"gpu-worker\"" (printf "job=\"%s/%s\"" .Release.Namespace $full) -}}
{{- end -}}

{{/* The most pods that have a partition for each of their executors; 0 if topics.partitions is not set. */}}
{{- define "gpu-worker.podsMax" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- div (mul (default 0 .Values.topics.partitions | int64) (len $settings.topics.jobs)) (include "gpu-worker.executors" . | int64) -}}
{{- end -}}

{{/* The lag of a topic for which KEDA starts one more pod; empty if the values do not say it. */}}
{{- define "gpu-worker.lagThreshold" -}}
{{- $keda := .Values.keda -}}
{{- if $keda.lagThreshold -}}
{{- $keda.lagThreshold | int64 -}}
{{- else if $keda.jobsPerSecond -}}
{{- mulf $keda.targetWaitSeconds $keda.jobsPerSecond | ceil | int64 -}}
{{- end -}}
{{- end -}}

{{/* The most pods that these values can lead to. */}}
{{- define "gpu-worker.replicasMax" -}}
{{- $scaler := .Values.keda.enabled | ternary .Values.keda .Values.hpa -}}
{{- if $scaler.enabled -}}
{{- kindIs "invalid" $scaler.maxReplicas | ternary (include "gpu-worker.podsMax" .) $scaler.maxReplicas | int64 -}}
{{- else -}}
{{- .Values.replicas | int64 -}}
{{- end -}}
{{- end -}}

{{/* A Kubernetes quantity of memory in bytes, as far as this chart takes one. */}}
{{- define "gpu-worker.quantity" -}}
{{- $text := include "gpu-worker.text" . -}}
{{- $digits := regexFind "^[0-9]+" $text -}}
{{- mul (int64 $digits) (get (dict "Mi" 1048576 "Gi" 1073741824) (trimPrefix $digits $text)) -}}
{{- end -}}

{{/*
Host memory of an executor in bytes, as config/README.md, "Memory", bounds it: messages with what is fetched ahead, and one
response of each broker that is named; pinned memory; graphs; blobs, where there is a store of them; the rest; and what
CUDA takes, or the memory of a device of the CPU driver. A spare takes the lanes' pinned memory, the rest and CUDA's once more.
*/}}
{{- define "gpu-worker.executorBytes" -}}
{{- $s := include "gpu-worker.settings" . | fromYaml -}}
{{- $mib := 1048576 -}}
{{- $flight := include "gpu-worker.bytes" (list "limits.bytes_in_flight" $s.limits.bytes_in_flight) | int64 -}}
{{- $brokers := splitList "," $s.kafka.bootstrap_servers | len -}}
{{- $messages := div (mul $flight (add 5 $brokers)) 4 -}}
{{- $slab := include "gpu-worker.bytes" (list "lane_slab_bytes" $s.lane_slab_bytes) | int64 -}}
{{- $lanes := include "gpu-worker.count" (list "lanes" $s.lanes) | int64 -}}
{{- $depth := include "gpu-worker.count" (list "lane_depth" $s.lane_depth) | int64 -}}
{{- $threads := include "gpu-worker.count" (list "prepare.threads" $s.prepare.threads) | int64 -}}
{{- $job := include "gpu-worker.bytes" (list "limits.job_bytes" $s.limits.job_bytes) | int64 -}}
{{- $pinned := include "gpu-worker.bytes" (list "pools.pinned_bytes" $s.pools.pinned_bytes) | int64 -}}
{{- $pinned = $pinned | default (max (mul 128 $mib) (add (mul 2 $lanes $depth $slab) (mul 4 $mib $threads) $job)) -}}
{{- $sum := add $messages $pinned (mul 30 $mib) -}}
{{- if eq $s.batch.graphs "auto" -}}
{{- $sum = add $sum (div (mul $lanes $depth 12 $mib) 10) -}}
{{- end -}}
{{- if or $s.blobs.dir $s.blobs.url -}}
{{- $sum = add $sum $job (include "gpu-worker.bytes" (list "blobs.bytes_max" $s.blobs.bytes_max) | int64) -}}
{{- end -}}
{{- if eq $s.driver "cpu" -}}
{{- $sum = add $sum (include "gpu-worker.bytes" (list "cpu_driver.memory_bytes" $s.cpu_driver.memory_bytes) | int64) -}}
{{- else -}}
{{- $sum = add $sum (include "gpu-worker.quantity" .Values.resources.cudaMemory | int64) -}}
{{- end -}}
{{- if $s.executors.spare -}}
{{- $sum = add $sum (mul 2 $lanes $depth $slab) (mul 4 $mib $threads) (mul 30 $mib) -}}
{{- if eq $s.driver "cpu" -}}
{{- $sum = add $sum (mul $lanes $depth $slab) -}}
{{- else -}}
{{- $sum = add $sum (include "gpu-worker.quantity" .Values.resources.cudaMemory | int64) -}}
{{- end -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

{{/* Memory of a pod: that of its executors, and 64 MiB for the supervisor. */}}
{{- define "gpu-worker.memory" -}}
{{- if .Values.resources.memory -}}
{{- .Values.resources.memory -}}
{{- else -}}
{{- $executors := include "gpu-worker.executors" . | int64 -}}
{{- $bytes := mul $executors (include "gpu-worker.executorBytes" . | int64) -}}
{{- printf "%dMi" (add 64 (div (add $bytes 1048575) 1048576)) -}}
{{- end -}}
{{- end -}}

{{/* Ports that a list of host:port names, each once, as a list in YAML. */}}
{{- define "gpu-worker.brokerPorts" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- $ports := list -}}
{{- range splitList "," $settings.kafka.bootstrap_servers -}}
{{- $ports = append $ports (regexFind "[0-9]+$" . | default "9092" | int64) -}}
{{- end -}}
{{- range .Values.networkPolicy.brokerPorts }}{{ $ports = append $ports (int64 .) }}{{ end -}}
{{- $ports | uniq | toYaml -}}
{{- end -}}

{{/* The port of a URL: its own, or that of its scheme. */}}
{{- define "gpu-worker.urlPort" -}}
{{- $authority := regexFind "://[^/]*" . -}}
{{- $own := regexFind ":[0-9]+$" $authority | trimPrefix ":" -}}
{{- default (hasPrefix "https:" . | ternary "443" "80") $own -}}
{{- end -}}

{{/* What auto.offset.reset means for KEDA, which must look at a group that never committed as the worker does. */}}
{{- define "gpu-worker.offsetResetPolicy" -}}
{{- $settings := include "gpu-worker.settings" . | fromYaml -}}
{{- $reset := get (default dict $settings.kafka.consumer) "auto.offset.reset" | default "earliest" -}}
{{- has $reset (list "latest" "largest" "end") | ternary "latest" "earliest" -}}
{{- end -}}
