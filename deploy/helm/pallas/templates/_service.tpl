{{- define "pallas.serviceaccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .host | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "pallas.labels" . | nindent 4 }}
  {{- with .it.serviceAccountAnnotations }}
  annotations: {{ toJson . }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}

{{- define "pallas.service" -}}
{{- $service := .it.service }}
{{- $port := include "pallas.port" . }}
{{- $protocol := ternary $service.appProtocol $port (eq $port "mcp") }}
{{- $number := include "pallas.listensOn" . }}
{{- $labels := $service.labels }}
{{- $annotations := $service.annotations }}
{{- if and .root.Values.kagent.enabled (eq $port "mcp") }}
{{- $labels = merge (dict "kagent.dev/mcp-service" "true") $labels }}
{{- $annotations = merge (dict "kagent.dev/mcp-service-path" (.it.path | default "/mcp") "kagent.dev/mcp-service-port" $number) $annotations }}
{{- end }}
apiVersion: v1
kind: Service
metadata:
  name: {{ .host | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "pallas.labels" . | nindent 4 }}
    {{- range $key, $value := $labels }}
    {{ $key | toJson }}: {{ $value | toJson }}
    {{- end }}
  {{- with $annotations }}
  annotations: {{ toJson . }}
  {{- end }}
spec:
  type: {{ $service.type }}
  selector: {{- include "pallas.selector" . | nindent 4 }}
  ports:
    - {name: {{ $port }}, port: {{ $number }}, targetPort: {{ $port }}, appProtocol: {{ $protocol | quote }}}
    {{- if and (ne $service.type "ClusterIP") .it.publish .it.port }}
    - {name: published, port: {{ .it.port }}, targetPort: {{ $port }}, appProtocol: {{ $protocol | quote }}}
    {{- end }}
{{- end }}

{{/* An agent's pods, ready or not, for the registry alone: one that refuses its input is never ready, and is asked why. */}}
{{- define "pallas.pods" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ printf "pallas-pods-%s" .host | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "pallas.fleetLabels" .root | nindent 4 }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {{- include "pallas.selector" . | nindent 4 }}
  ports:
    - {name: mcp, port: 8080, targetPort: mcp, appProtocol: {{ .it.service.appProtocol | quote }}}
{{- end }}
