{{- define "pallas.pod" -}}
{{- $it := .it }}
serviceAccountName: {{ .host | quote }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- if eq .kind "agent" }}
hostname: {{ .host | quote }}
subdomain: agents
{{- end }}
terminationGracePeriodSeconds: {{ add $it.preStopSeconds $it.graceSeconds }}
securityContext: {{- include "pallas.podSecurityContext" . | nindent 2 }}
{{- with .root.Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "runtimeClassName" }}
{{- with get $it $key }}
{{ $key }}: {{ . | toJson }}
{{- end }}
{{- end }}
{{- if and $it.topologySpread (or $it.autoscaling.enabled (gt (int $it.replicas) 1)) }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "pallas.selector" . | nindent 8 }}
{{- end }}
{{- if or $it.waitsFor (include "pallas.copies" .) }}
initContainers:
  {{- if include "pallas.copies" . }}
  - name: project
    image: {{ include "pallas.image" . | quote }}
    imagePullPolicy: {{ .root.Values.images.pullPolicy }}
    args: {{ list "-P" "-c" (.root.Files.Get "files/place.py") | toJson }}
    resources: {{- include "pallas.initResources" . | nindent 6 }}
    securityContext: {{- include "pallas.securityContext" . | nindent 6 }}
    volumeMounts:
      - {name: project, mountPath: /project}
      - {name: config, mountPath: /delivered/config, readOnly: true}
      {{- if $it.files }}
      - {name: code, mountPath: /delivered/code, readOnly: true}
      {{- end }}
  {{- end }}
  {{- if $it.waitsFor }}
  - name: wait
    image: {{ include "pallas.image" . | quote }}
    imagePullPolicy: {{ .root.Values.images.pullPolicy }}
    args: {{ concat (list "-P" "-m" "pallas_contract" "--wait" (toString $it.waitSeconds)) $it.waitsFor | toJson }}
    resources: {{- include "pallas.initResources" . | nindent 6 }}
    securityContext: {{- include "pallas.securityContext" . | nindent 6 }}
  {{- end }}
{{- end }}
containers:
  - {{- include "pallas.container" . | nindent 4 }}
volumes: {{- include "pallas.volumes" . | nindent 2 }}
{{- end }}

{{- define "pallas.initResources" -}}
limits: {cpu: 500m, memory: 64Mi, ephemeral-storage: 16Mi}
requests: {cpu: 10m, memory: 32Mi, ephemeral-storage: 1Mi}
{{- end }}

{{- /* What a pod keeps in itself counts against its limit of ephemeral storage: there is as much more of that. */}}
{{- define "pallas.resources" -}}
{{- $limit := dig "limits" "ephemeral-storage" "" .resources }}
{{- if and $limit (dig "state" "enabled" false .) (not .state.persistent) }}
{{- $bytes := add (include "pallas.bytes" $limit) (include "pallas.bytes" .state.size) }}
{{- $limits := merge (dict "ephemeral-storage" ($bytes | toString)) .resources.limits }}
{{- merge (dict "limits" $limits) .resources | toYaml }}
{{- else }}
{{- .resources | toYaml }}
{{- end }}
{{- end }}

{{- /* A quantity of Kubernetes as bytes. */}}
{{- define "pallas.bytes" -}}
{{- $units := dict "" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 }}
{{- $unit := regexFind "[A-Za-z]*$" . }}
{{- mulf (regexFind "^[0-9.]+" . | float64) (get $units $unit | default 1.0) | int64 }}
{{- end }}

{{- define "pallas.container" -}}
{{- $it := .it }}
{{- $env := $it.env | default dict }}
name: {{ .kind }}
image: {{ include "pallas.image" . | quote }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
{{- if not $it.foreign }}
workingDir: /project
{{- end }}
terminationMessagePolicy: FallbackToLogsOnError # why it ended, for `kubectl describe pod`
{{- with $it.entrypoint }}
command:
  {{- range . }}
  - {{ include "pallas.literal" . }}
  {{- end }}
{{- end }}
{{- with $it.args }}
args:
  {{- range . }}
  - {{ include "pallas.literal" . }}
  {{- end }}
{{- end }}
{{- if or $env (not $it.foreign) }}
env:
  {{- range $key, $value := omit $env "PALLAS_ALLOWED_HOSTS" }}
  - name: {{ $key | quote }}
    {{- if $value }}
    value: {{ include "pallas.literal" $value }}
    {{- end }}
  {{- end }}
  {{- if hasKey $env "PALLAS_ALLOWED_HOSTS" }}
  - name: PALLAS_ALLOWED_HOSTS
    value: {{ include "pallas.literal" (include "pallas.allowedHosts" .) }}
  {{- end }}
  {{- if eq .kind "registry" }}
  - name: PALLAS_PODS_DOMAIN
    value: {{ printf "%s.svc.%s." .root.Release.Namespace .root.Values.clusterDomain | quote }}
  - name: PALLAS_REPLICA_DOMAIN
    value: {{ printf "agents.%s.svc.%s." .root.Release.Namespace .root.Values.clusterDomain | quote }}
  {{- end }}
{{- end }}
{{- with $it.envFrom }}
envFrom: {{ . | toJson }}
{{- end }}
ports:
  - name: {{ include "pallas.port" . }}
    containerPort: {{ include "pallas.listensOn" . }}
{{- include "pallas.probes" . }}
lifecycle: {preStop: {sleep: {seconds: {{ $it.preStopSeconds }}}}}
resources: {{- include "pallas.resources" $it | nindent 2 }}
securityContext: {{- include "pallas.securityContext" . | nindent 2 }}
volumeMounts: {{- include "pallas.mounts" . | nindent 2 }}
{{- end }}
