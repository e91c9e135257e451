{{/* A ConfigMap key has no slash in it; `.paths.json` there says which path each stands for. */}}
{{- define "pallas.key" -}}
{{- . | replace "/" "." }}
{{- end }}

{{- define "pallas.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if or (eq .kind "registry") (include "pallas.copies" .) }}
- {name: project, mountPath: /project, readOnly: true}
{{- end }}
{{- if and .it.foreign .it.files }}
- {name: code, mountPath: /project, readOnly: true}
{{- end }}
{{- if .it.secrets }}
- {name: secrets, mountPath: /run/secrets, readOnly: true}
{{- end }}
{{- if include "pallas.keeps" . }}
- {name: state, mountPath: /state}
{{- end }}
{{- range .it.volumeMounts }}
- {{ toJson . }}
{{- end }}
{{- end }}

{{/*
Agents and services get a copy of their own files as they were when the pod started. The registry sees the ConfigMap
itself, and so its changes.
*/}}
{{- define "pallas.copies" -}}
{{- if and (ne .kind "registry") (not .it.foreign) (eq .root.Values.project.delivery "configMap") }}yes{{ end }}
{{- end }}

{{/* What must outlive a restart: who registered, conversations, files of a service. */}}
{{- define "pallas.keeps" -}}
{{- if (.it.state | default dict).enabled }}yes{{ end }}
{{- end }}

{{/* Kept at `helm uninstall`: what is in it is not in any file of the project. */}}
{{- define "pallas.claim" -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: {{ printf "%s-state" .host | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "pallas.labels" . | nindent 4 }}
  annotations: {helm.sh/resource-policy: keep}
spec:
  accessModes: [ReadWriteOnce]
  {{- with .it.state.storageClass }}
  storageClassName: {{ . | quote }}
  {{- end }}
  resources: {requests: {storage: {{ .it.state.size }}}}
{{- end }}

{{- define "pallas.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: {{ .it.tmpSize }}}
{{- if and (eq .kind "registry") .root.Values.project.lock }}
- name: project
  projected:
    sources:
      - configMap: {name: pallas-config}
      - configMap: {name: pallas-lock}
{{- else if eq .kind "registry" }}
- {name: project, configMap: {name: pallas-config}}
{{- else if include "pallas.copies" . }}
- {name: project, emptyDir: {sizeLimit: 8Mi}}
- {name: config, configMap: {name: pallas-config}}
{{- if .it.files }}
- name: code
  configMap:
    name: pallas-code
    items:
      - {key: .paths.json, path: .paths.json}
      {{- range .it.files }}
      - {key: {{ include "pallas.key" . | quote }}, path: {{ include "pallas.key" . | quote }}}
      {{- end }}
{{- end }}
{{- end }}
{{- if and .it.foreign .it.files }}{{/* no Python of ours is there to place a copy: the ConfigMap is its folder */}}
- name: code
  configMap:
    name: pallas-code
    items:
      {{- range .it.files }}
      - {key: {{ include "pallas.key" . | quote }}, path: {{ . | quote }}}
      {{- end }}
{{- end }}
{{- if .it.secrets }}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $target, $source := .it.secrets }}
      {{- $secret := get $.root.Values.secrets $source | default dict }}
      - secret:
          name: {{ $secret.existingSecret | default "pallas-secrets" | quote }}
          items:
            - {key: {{ $secret.key | default $source | quote }}, path: {{ $target | quote }}}
      {{- end }}
{{- end }}
{{- if include "pallas.keeps" . }}
{{- if .it.state.persistent }}
- {name: state, persistentVolumeClaim: {claimName: {{ .it.state.existingClaim | default (printf "%s-state" .host) | quote }}}}
{{- else }}
- {name: state, emptyDir: {sizeLimit: {{ .it.state.size }}}}
{{- end }}
{{- end }}
{{- with .it.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
