{{/* As with policies, what the API server would fill into a list is said. */}}
{{- define "pallas.httproute" -}}
{{- $url := urlParse .it.publicUrl }}
{{- $backend := list (dict "group" "" "kind" "Service" "name" .host "port" 8080 "weight" 1) }}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: {{ .host | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "pallas.labels" . | nindent 4 }}
  {{- with .root.Values.httpRoute.annotations }}
  annotations: {{ toJson . }}
  {{- end }}
spec:
  parentRefs: {{ include "pallas.parents" .root }}
  hostnames: [{{ get $url "hostname" | quote }}]
  rules:
    {{- range .it.mcpRoutes }}
    - matches:
        - path: {type: PathPrefix, value: {{ printf "%s%s" (get $url "path") (.path | default "/") | quote }}}
          headers:
            - {type: Exact, name: Mcp-Method, value: {{ .method | default "tools/call" | quote }}}
            {{- with .name }}
            - {type: Exact, name: Mcp-Name, value: {{ . | quote }}}
            {{- end }}
      {{- if get $url "path" }}
      filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: {{ .path | default "/" | quote }}}}}]
      {{- end }}
      {{- with .timeout }}
      timeouts: {request: {{ . | quote }}}
      {{- end }}
      backendRefs: {{ include "pallas.backends" (.backendRefs | default $backend) }}
    {{- end }}
    - matches: [{path: {type: PathPrefix, value: {{ get $url "path" | default "/" | quote }}}}]
      {{- if get $url "path" }}
      filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /}}}]
      {{- end }}
      backendRefs: {{ toJson $backend }}
{{- end }}

{{- define "pallas.parents" -}}
{{- $parents := list }}
{{- range .Values.httpRoute.parentRefs }}
{{- $parents = append $parents (mergeOverwrite (dict "group" "gateway.networking.k8s.io" "kind" "Gateway") .) }}
{{- end }}
{{- toJson $parents }}
{{- end }}

{{- define "pallas.backends" -}}
{{- $backends := list }}
{{- range . }}{{ $backends = append $backends (mergeOverwrite (dict "group" "" "kind" "Service" "weight" 1) .) }}{{ end }}
{{- toJson $backends }}
{{- end }}
