{{/*
A question that is a program in the container takes a tenth of a second of a core, a GET next to nothing: such a one is asked
less often once it is up, and where it is ours it waits for a program that starts, no longer than a period: a kubelet counts
periods from when the pod was made, so its first question comes up to one of them after the container has started. It asks for
readiness as soon as the startup probe is answered.
*/}}
{{- define "pallas.probes" }}
{{- $live := include "pallas.ask" (dict "it" .it "path" "live") }}
{{- $ready := include "pallas.ask" (dict "it" .it "path" "ready") }}
{{- $program := hasPrefix "exec:" $ready }}
{{- $period := 2 }}
{{- $start := include "pallas.ask" (dict "it" .it "path" "live" "wait" $period) }}
{{- $waits := ne $start $live }}
startupProbe:
  {{- $start | nindent 2 }}
  periodSeconds: {{ $period }}
  timeoutSeconds: {{ ternary (add $period 5) 5 $waits }}
  failureThreshold: {{ div (add .it.startupSeconds $period -1) $period }}
livenessProbe:
  {{- $live | nindent 2 }}
  periodSeconds: {{ ternary 20 10 $program }}
  timeoutSeconds: 5
  failureThreshold: {{ ternary 2 3 $program }}
readinessProbe:
  {{- $ready | nindent 2 }}
  periodSeconds: {{ ternary 10 5 $program }}
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
exec: {command: [python, -P, -m, pallas_contract, {{ with .wait }}"--wait", {{ . | quote }}, {{ end }}"http://127.0.0.1:8080/mcp"]}
{{- end }}
{{- end }}
{{- end }}
