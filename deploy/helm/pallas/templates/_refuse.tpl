{{/* What a schema cannot see, refused before anything is changed. */}}
{{- define "pallas.refuse" -}}
{{- if not .Values.agents }}
{{- fail "there are no agents: give the values that `pallas-gen helm` writes (-f values.yaml)" }}
{{- end }}
{{- range $section, $members := dict "agents" .Values.agents "services" .Values.services }}
{{- range $name, $own := $members }}
{{- if not (or $own.args $own.fingerprint) }}
{{- fail (printf "%s.%s is in your values alone: correct the name, or add it to agents.yaml and run `pallas-gen helm`, which writes what it needs" $section $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.gateway (not .Values.gateway.fingerprint) }}
{{- fail "gateway is in your values alone: add it to agents.yaml and run `pallas-gen helm`, which writes what it needs" }}
{{- end }}
{{- include "pallas.edge.refuse" . }}
{{- $written := dict }}
{{- range $name, $secret := .Values.secrets }}
{{- if and $secret.content (not $secret.existingSecret) }}
{{- $key := $secret.key | default $name }}
{{- $other := get $written $key }}
{{- if and $other (ne (get $.Values.secrets $other).content $secret.content) }}
{{- fail (printf "secrets.%s.key: secrets.%s has the key %s too, and the Secret that the chart makes holds one content for it: leave `key` out, it is for a Secret of yours" $name $other $key) }}
{{- end }}
{{- $_ := set $written $key $name }}
{{- end }}
{{- if and (not $secret.content) (not $secret.existingSecret) }}
{{- fail (printf "secrets.%s has neither content nor existingSecret: give it with --set-file secrets.%s.content=%s, or name a Secret in secrets.%s.existingSecret" $name $name ($secret.file | default "FILE") $name) }}
{{- end }}
{{- if $secret.existingSecret }}
{{- include "pallas.refuseMissing" (dict "root" $ "name" $name "secret" $secret.existingSecret "key" ($secret.key | default $name)) }}
{{- end }}
{{- end }}
{{- range $name, $own := include "pallas.doors" . | fromJson }}
{{- range $kind, $exposure := dict "ingress" $.Values.ingress "httpRoute" $.Values.httpRoute }}
{{- if and $exposure.enabled $own.publish (not $own.publicUrl) }}
{{- fail (printf "%s.enabled needs `public_url` in agents.yaml, such as https://{name}.example.com: without it the registry publishes %s at an address that is not served" $kind $name) }}
{{- end }}
{{- end }}
{{- if and $.Values.ingress.enabled $own.publish (get (urlParse $own.publicUrl) "path") }}
{{- fail (printf "ingress.enabled: %s is published at %s, and an Ingress cannot take the path away: use httpRoute, or `{name}` in the host name of public_url" $name $own.publicUrl) }}
{{- end }}
{{- end }}
{{- range $name, $own := merge (include "pallas.doors" . | fromJson) (.Values.services | default dict) }}
{{- $it := mergeOverwrite (deepCopy $.Values.defaults) $own }}
{{- if and (hasKey $own "stateless") (not $own.stateless) (or $it.autoscaling.enabled (gt (int $it.replicas) 1)) }}
{{- if ($own.state | default dict).enabled }}{{ if eq $name "gateway" }}
{{- fail "defaults: the gateway keeps its audit, confirmations or durable graphs in files of its own: add `store`, a PostgreSQL that several share, to `gateway` in agents.yaml, or give replicas and autoscaling to agents (agents.NAME.autoscaling.enabled)" }}
{{- end }}{{ end }}
{{- $why := ternary "keeps files of its own" "remembers its callers" (hasKey ($.Values.services | default dict) $name) }}
{{- fail (printf "defaults: %s %s, so there is one of it: give replicas and autoscaling to those that do not (agents.NAME.autoscaling.enabled)" $name $why) }}
{{- end }}
{{- end }}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) }}{{ fail "httpRoute.enabled needs httpRoute.parentRefs" }}{{ end }}
{{- end }}

{{/* Only a cluster can tell: `helm template` has none, and finds no namespace at all. */}}
{{- define "pallas.refuseMissing" -}}
{{- $namespace := .root.Release.Namespace }}
{{- if or (lookup "v1" "Namespace" "" $namespace) (lookup "v1" "Namespace" "" "default") }}
{{- $found := lookup "v1" "Secret" $namespace .secret }}
{{- if not $found }}
{{- fail (printf "secrets.%s.existingSecret: there is no Secret %s in namespace %s" .name .secret $namespace) }}
{{- else if not (hasKey ($found.data | default dict) .key) }}
{{- fail (printf "secrets.%s: the Secret %s in namespace %s has no key %s" .name .secret $namespace .key) }}
{{- end }}
{{- end }}
{{- end }}
