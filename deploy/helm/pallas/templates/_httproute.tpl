{{/* As with policies, what the API server would fill into a list is said. */}}
{{- define "pallas.httproute" -}}
{{- $parents := list }}
{{- range .root.Values.httpRoute.parentRefs }}
{{- $parents = append $parents (mergeOverwrite (dict "group" "gateway.networking.k8s.io" "kind" "Gateway") .) }}
{{- end }}
{{- $route := .root.Values.httpRoute }}
{{- $url := urlParse .it.publicUrl }}
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
  parentRefs: {{ toJson $parents }}
  hostnames: [{{ get $url "hostname" | quote }}]
  rules:
    - matches: [{path: {type: PathPrefix, value: {{ get $url "path" | default "/" | quote }}}}]
      {{- if get $url "path" }}
      filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]
      {{- end }}
      backendRefs: [{group: "", kind: Service, name: {{ .host | quote }}, port: 8080, weight: 1}]
{{- end }}
