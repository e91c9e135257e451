{{/* A ConfigMap key has no slash in it; the path is given again where it is mounted. */}}
{{- define "pallas.key" -}}
{{- . | replace "/" "." }}
{{- end }}

{{- define "pallas.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if include "pallas.hasProject" . }}
- {name: project, mountPath: /project, readOnly: true}
{{- end }}
{{- if .it.secrets }}
- {name: secrets, mountPath: /run/secrets, readOnly: true}
{{- end }}
{{- range .it.volumeMounts }}
- {{ toJson . }}
{{- end }}
{{- end }}

{{- define "pallas.hasProject" -}}
{{- if or (eq .kind "registry") (eq .root.Values.project.delivery "configMap") }}yes{{ end }}
{{- end }}

{{- define "pallas.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: {{ .it.tmpSize }}}
{{- if include "pallas.hasProject" . }}
- name: project
  projected:
    sources:
      - configMap: {name: pallas-config}
      {{- if and (ne .kind "registry") .root.Values.project.code }}
      - configMap:
          name: pallas-code
          items:
            {{- range $path, $_ := .root.Values.project.code }}
            - {key: {{ include "pallas.key" $path | quote }}, path: {{ $path | quote }}}
            {{- end }}
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
{{- with .it.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
