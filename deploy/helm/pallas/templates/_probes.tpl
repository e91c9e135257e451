{{- define "pallas.probes" }}
{{- $live := include "pallas.ask" (dict "it" .it "path" "live") }}
{{- $ready := include "pallas.ask" (dict "it" .it "path" "ready") }}
startupProbe:
  {{- $live | nindent 2 }}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: {{ div (add .it.startupSeconds 1) 2 }}
livenessProbe:
  {{- $live | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  {{- $ready | nindent 2 }}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end }}

{{/* A GET where a path answers it, else the MCP probe, which is what compose runs. */}}
{{- define "pallas.ask" -}}
{{- with .it.healthPaths -}}
httpGet: {path: {{ get . $.path | quote }}, port: {{ include "pallas.listensOn" $ }}}
{{- else -}}
{{- if .it.healthCommand -}}
exec:
  command:
    {{- range .it.healthCommand }}
    - {{ include "pallas.literal" . }}
    {{- end }}
{{- else if .it.foreign -}}
tcpSocket: {port: {{ include "pallas.listensOn" . }}}
{{- else -}}
exec: {command: [python, -P, -m, pallas_contract, "http://127.0.0.1:8080/mcp"]}
{{- end }}
{{- end }}
{{- end }}
