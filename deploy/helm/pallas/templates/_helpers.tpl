{{/*
Every template below takes one workload: a dict of
  root  the chart's root context
  name  as agents.yaml says        host  its DNS name      kind  agent, service, registry or gateway
  it    its values over `defaults` callers  host names that may call it
  ports who listens elsewhere than at 8080 -> port
*/}}

{{/* What may be published, by name, as JSON. No agent can be called like one of the other two. */}}
{{- define "pallas.doors" -}}
{{- $doors := merge (dict "registry" .Values.registry) .Values.agents }}
{{- if .Values.gateway }}{{ $_ := set $doors "gateway" .Values.gateway }}{{ end }}
{{- $doors | toJson }}
{{- end }}

{{/* What selectors use: must never change for a workload. */}}
{{- define "pallas.selector" -}}
app.kubernetes.io/name: {{ .host | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .kind }}
{{- end }}

{{- define "pallas.common" -}}
app.kubernetes.io/part-of: {{ .root.Values.project.name | default "pallas" | quote }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "pallas.labels" -}}
{{ include "pallas.selector" . }}
{{ include "pallas.common" . }}
{{- end }}

{{/* Labels of what belongs to the fleet and not to one workload. */}}
{{- define "pallas.fleetLabels" -}}
app.kubernetes.io/name: pallas
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: fleet
{{ include "pallas.common" (dict "root" .) }}
{{- end }}

{{/*
What its own `image` does not mention comes from `images`. What it mentions counts, also empty: `pallas-gen helm` writes
all four keys, so that `special:2` stays Docker Hub's where the agents come from a registry. (A merge would skip the empty.)
*/}}
{{- define "pallas.image" -}}
{{- $images := .root.Values.images }}
{{- $image := deepCopy (ternary $images.registry $images.agent (eq .kind "registry")) }}
{{- range $key, $value := .it.image }}{{ $_ := set $image $key $value }}{{ end }}
{{- if .it.foreign }}{{ $image = .it.image | default dict }}{{ end }}
{{- $host := (.root.Values.global | default dict).imageRegistry | default $image.registry }}
{{- printf "%s%s%s%s" (ternary (printf "%s/" $host) "" (not (empty $host))) $image.repository (ternary (printf ":%s" $image.tag) "" (not (empty $image.tag))) (ternary (printf "@%s" $image.digest) "" (not (empty $image.digest))) }}
{{- end }}

{{/* MCP or plain HTTP: the name of the port. */}}
{{- define "pallas.port" -}}
{{- if has .kind (list "registry" "gateway") }}http{{ else }}{{ .it.protocol | default "mcp" }}{{ end }}
{{- end }}

{{/* The port of its container and of its Service: 8080, but for an image that is not the kit's. */}}
{{- define "pallas.listensOn" -}}
{{- .it.containerPort | default 8080 | int }}
{{- end }}

{{/* The plan's Host headers, and the names a workload has only in a cluster. */}}
{{- define "pallas.allowedHosts" -}}
{{- $namespace := .root.Release.Namespace }}
{{- $hosts := list (printf "%s.%s" .host $namespace) (printf "%s.%s.svc" .host $namespace) (printf "%s.%s.svc.%s" .host $namespace .root.Values.clusterDomain) }}
{{- $patterns := list (get .it.env "PALLAS_ALLOWED_HOSTS") }}
{{- range $hosts | uniq }}{{ $patterns = concat $patterns (list . (printf "%s:*" .)) }}{{ end }}
{{- join "," $patterns }}
{{- end }}

{{/* Kubernetes reads $(NAME) and $$ in arguments and environment; doubling every $ keeps them literal. */}}
{{- define "pallas.literal" -}}
{{- . | replace "$" "$$" | toJson }}
{{- end }}

{{- define "pallas.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "pallas.podSecurityContext" -}}
runAsNonRoot: true
{{- with .it.user }}
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* How many of each agent the registry should find, as JSON; none where an autoscaler decides, or where it is one. */}}
{{- define "pallas.replicas" -}}
{{- $replicas := dict }}
{{- range $name, $own := .Values.agents }}
{{- $it := mergeOverwrite (deepCopy $.Values.defaults) $own }}
{{- if and (not $it.autoscaling.enabled) (gt (int $it.replicas) 1) }}{{ $_ := set $replicas $name (int $it.replicas) }}{{ end }}
{{- end }}
{{- $replicas | toJson }}
{{- end }}
