{{- define "kvtier.name" -}}
{{ $.Values.nameOverride | default (printf "%s-operator" $.Release.Name) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kvtier.serviceAccountName" -}}
{{ $.Values.serviceAccount.name | default (include "kvtier.name" $) }}
{{- end }}

{{- define "kvtier.image" -}}
{{- with $.Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "kvtier.podLabels" -}}
app.kubernetes.io/name: kvtier-operator
app.kubernetes.io/instance: {{ include "kvtier.name" $ }}
app.kubernetes.io/component: operator
app.kubernetes.io/part-of: kvtier
{{- end }}

{{- define "kvtier.labels" -}}
{{ include "kvtier.podLabels" $ }}
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* "wait" where a live cluster has no KVCacheTier yet: Helm maps every kind before it creates the first object.
A live cluster lists kinds (v1/Pod), `helm template` only versions (v1). */ -}}
{{- define "kvtier.tiersWait" -}}
{{- $apis := $.Capabilities.APIVersions -}}
{{- if and ($apis.Has "v1/Pod") (not ($apis.Has "kvtier.dev/v1alpha1/KVCacheTier")) }}wait{{ end }}
{{- end }}
