{{- define "pallas.httproute" -}}
{{- $route := .root.Values.httpRoute }}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: {{ .host | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "pallas.labels" . | nindent 4 }}
  {{- with $route.annotations }}
  annotations: {{ toJson . }}
  {{- end }}
spec:
  parentRefs: {{ toJson $route.parentRefs }}
  hostnames: [{{ printf "%s.%s" .host $route.domain | quote }}]
  rules:
    - backendRefs: [{name: {{ .host | quote }}, port: 8080}]
{{- end }}
