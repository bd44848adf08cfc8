{{- /* Generated from operator/kvtier_operator/install, do not edit: run `make generate`. */ -}}
{{- define "kvtier.policy" }}
{{- $policy := $.Values.operator.policy | default dict }}
{{- range list "hostPath" "rootEngines" "ipcLock" "images" "hostNames" "foreignGateways" "podTemplates" }}
{{- if or (not (hasKey $policy .)) (kindIs "invalid" (get $policy .)) }}{{ fail (printf "operator.policy.%s: it has no value, which would allow all: write allow or deny (where helm upgrade --reuse-values kept older values: --reset-then-reuse-values)" .) }}{{ end }}
{{- end }}
{{- $policy | toJson }}
{{- end }}
