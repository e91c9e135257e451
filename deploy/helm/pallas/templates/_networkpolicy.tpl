{{/*
The rules of a policy are one value to a server-side apply, so what the API server would fill in (`protocol`) is said:
else another tool that applies the same manifest is told of a conflict.

An empty list of peers gives no rule: to Kubernetes `to: []` is everybody, cloud metadata too.
*/}}
{{- define "pallas.networkpolicy" -}}
{{- $policy := .root.Values.networkPolicy }}
{{- $instance := .root.Release.Name | quote }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .host | quote }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels: {{- include "pallas.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "pallas.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - ports: [{port: {{ include "pallas.listensOn" . }}, protocol: TCP}]
      from:
        {{- range .callers }}
        - podSelector: {matchLabels: {app.kubernetes.io/instance: {{ $instance }}, app.kubernetes.io/component: {{ if eq . "gateway" }}gateway{{ else if hasKey $.ports . }}service{{ else }}agent{{ end }}, app.kubernetes.io/name: {{ . | quote }}}}
        {{- end }}
        {{- if or (eq .kind "agent") (has .host (.root.Values.registry.calls | default list)) }}
        - podSelector: {matchLabels: {app.kubernetes.io/instance: {{ $instance }}, app.kubernetes.io/component: registry}}
        {{- end }}
        - podSelector: {matchLabels: {app.kubernetes.io/instance: {{ $instance }}, app.kubernetes.io/component: test}}
        {{- if .it.publish }}
        {{- range include "pallas.outside" . | fromJsonArray }}
        - {{ toJson . }}
        {{- end }}
        {{- end }}
        {{- if and .root.Values.serviceMonitor.enabled (ne .kind "service") }}
        {{- range $policy.monitoringFrom }}
        - {{ toJson . }}
        {{- end }}
        {{- end }}
  egress:
    {{- with $policy.dnsTo }}
    - ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
      to: {{ toJson . }}
    {{- end }}
    {{- $byPort := dict }}
    {{- range .it.calls }}
    {{- $port := get $.ports . | default "8080" }}
    {{- $_ := set $byPort $port (append (get $byPort $port | default list) .) }}
    {{- end }}
    {{- range $port, $hosts := $byPort }}
    - ports: [{port: {{ $port }}, protocol: TCP}]
      to:
        {{- range $hosts }}
        - podSelector: {matchLabels: {app.kubernetes.io/instance: {{ $instance }}, app.kubernetes.io/name: {{ . | quote }}}}
        {{- end }}
    {{- end }}
    {{- if and .it.collectorPort $policy.collectorAt }}
    - ports: [{port: {{ .it.collectorPort }}, protocol: TCP}]
      to: {{ toJson $policy.collectorAt }}
    {{- end }}
    {{- $world := .it.egressTo | default $policy.egressTo }}
    {{- if and .it.egress $world }}
    - to: {{ toJson $world }}
    {{- end }}
{{- end }}

{{/*
Who outside of the fleet may call what is published. Behind an Ingress or a Gateway that is never its own namespace:
there the graph decides. Behind a Service that is open to the world the caller is any address, a node's for one.
*/}}
{{- define "pallas.outside" -}}
{{- $values := .root.Values }}
{{- $peers := list }}
{{- if or $values.ingress.enabled $values.httpRoute.enabled }}
{{- $peers = append $peers (dict "namespaceSelector" (dict "matchExpressions" (list (dict "key" "kubernetes.io/metadata.name" "operator" "NotIn" "values" (list .root.Release.Namespace))))) }}
{{- end }}
{{- if ne .it.service.type "ClusterIP" }}
{{- range list "0.0.0.0/0" "::/0" }}{{ $peers = append $peers (dict "ipBlock" (dict "cidr" .)) }}{{ end }}
{{- end }}
{{- $values.networkPolicy.publishedFrom | default $peers | toJson }}
{{- end }}
