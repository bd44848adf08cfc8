{{- /* Generated from operator/kvtier_operator/install, do not edit: run `make generate`. */ -}}
{{- define "kvtier.podSecurityContext" }}
{{- $context := $.Values.operator.podSecurityContext | default (fromJson "{\"runAsNonRoot\": true, \"runAsUser\": 65532, \"runAsGroup\": 65532, \"seccompProfile\": {\"type\": \"RuntimeDefault\"}}") }}
{{- $mode := $.Values.openshift | default "auto" }}
{{- $there := $.Capabilities.APIVersions.Has "security.openshift.io/v1" }}
{{- if or (eq $mode "force") (and (eq $mode "auto") $there) }}
{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" }}
{{- end }}
{{- $context | toYaml }}
{{- end }}
{{- define "kvtier.containerSecurityContext" }}
{{- $context := $.Values.operator.containerSecurityContext | default (fromJson "{\"allowPrivilegeEscalation\": false, \"capabilities\": {\"drop\": [\"ALL\"]}, \"readOnlyRootFilesystem\": true}") }}
{{- $context | toYaml }}
{{- end }}
