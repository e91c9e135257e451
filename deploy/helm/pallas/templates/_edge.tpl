{{/* Given, or asked for where they are; what agentgateway takes as a URL comes in parts. */}}
{{- define "pallas.edge.jwks" -}}
{{- if .jwks }}
{{- dict "inline" .jwks | toJson }}
{{- else }}
{{- $keys := urlParse .jwksUrl }}
{{- dict "remote" (dict "jwksPath" (trimPrefix "/" (get $keys "path")) "backendRef" (dict "group" "agentgateway.dev" "kind" "AgentgatewayBackend" "name" "pallas-edge-issuer")) | toJson }}
{{- end }}
{{- end }}

{{/* What the gateway counts; clients of 2025 send no such header, and are counted there alone. */}}
{{- define "pallas.edge.cost" -}}
("mcp-method" in request.headers && request.headers["mcp-method"] in ["tools/call", "resources/read", "prompts/get"]) ? 1 : 0
{{- end }}

{{- define "pallas.edge.refuse" -}}
{{- $own := .Values.gateway | default dict }}
{{- $edge := $own.edge | default dict }}
{{- if and $edge.enabled (not (and $own.publish .Values.httpRoute.enabled)) }}
{{- fail "gateway.edge.enabled needs httpRoute.enabled, with a Gateway of agentgateway in httpRoute.parentRefs, and a gateway that agents.yaml publishes" }}
{{- end }}
{{- if and $edge.enabled $edge.issuer (not $edge.jwksUrl) (not $edge.jwks) }}
{{- fail "gateway.edge.jwks is empty, and agents.yaml has the issuer's keys in a file: give it with --set-file gateway.edge.jwks=FILE" }}
{{- end }}
{{- if and $edge.enabled (not $edge.jwks) (get (urlParse ($edge.jwksUrl | default "")) "query") }}
{{- fail "gateway.edge.jwks is empty, and agentgateway takes no jwks_url with a query: give it the keys with --set-file gateway.edge.jwks=FILE" }}
{{- end }}
{{- if and $edge.enabled $edge.strict (or $edge.tokens (not $edge.issuer)) }}
{{- fail "gateway.edge.strict would refuse callers with a static token, which only the gateway knows: leave it off, or give all callers a JWT" }}
{{- end }}
{{- if and $own.mcpRoutes (not .Values.httpRoute.enabled) }}
{{- fail "gateway.mcpRoutes are rules of an HTTPRoute: set httpRoute.enabled" }}
{{- end }}
{{- end }}
