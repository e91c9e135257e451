{{- define "pallas.deployment" -}}
{{- $it := .it }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .host | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "pallas.labels" . | nindent 4 }}
spec:
  {{- if not $it.autoscaling.enabled }}
  replicas: {{ $it.replicas }}
  {{- end }}
  revisionHistoryLimit: 3
  {{- if include "pallas.keeps" . }}
  strategy: {type: Recreate} # two cannot have its file
  {{- else }}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  {{- end }}
  selector:
    matchLabels: {{- include "pallas.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "pallas.labels" . | nindent 8 }}
        {{- range $key, $value := $it.labels }}
        {{ $key | toJson }}: {{ $value | toJson }}
        {{- end }}
      {{- with include "pallas.annotations" . }}
      annotations: {{- . | nindent 8 }}
      {{- end }}
    spec: {{- include "pallas.pod" . | nindent 6 }}
{{- end }}

{{/*
Checksums of what a process reads once, at its start: a change replaces the pods it concerns. `fingerprint` stands for the
program's part of the fleet file and of the code: neither as a whole, since both change with every other agent.

The registry follows its files and its tokens by itself, but a kubelet takes a minute to renew them. So another one takes
its place, ready before the old one goes, unless agents register with it: what they said would be lost, or its file be
held by two.
*/}}
{{- define "pallas.annotations" -}}
{{- $values := .root.Values }}
{{- $own := dict }}
{{- if eq .kind "registry" }}
{{- if or (not (hasKey .it "stateless")) .it.stateless }}
{{- $_ := set $own "checksum/config" (concat (list $values.project.config (include "pallas.replicas" .root)) (ternary (list $values.project.lock) list (not (empty $values.project.lock))) | toJson | sha256sum) }}
{{- end }}
{{- else }}
{{- with .it.fingerprint }}{{ $_ := set $own "checksum/files" . }}{{ end }}
{{- $configs := omit ($values.project.config | default dict) (.it.env.PALLAS_AGENTS_CONFIG | default "agents.yaml" | base) }}
{{- $_ := set $own "checksum/config" ($configs | toJson | sha256sum) }}
{{- $contents := list }}
{{- range $target, $source := .it.secrets }}{{ $contents = append $contents (get $values.secrets $source) }}{{ end }}
{{- if $contents }}{{ $_ := set $own "checksum/secrets" ($contents | toJson | sha256sum) }}{{ end }}
{{- end }}
{{- with mergeOverwrite $own (.it.annotations | default dict) }}{{ toYaml . }}{{ end }}
{{- end }}
