{{- define "kvtier.name" -}}
{{ $.Values.fullnameOverride | default $.Values.nameOverride | default (printf "%s-operator" $.Release.Name) | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kvtier.serviceAccountName" -}}
{{ $.Values.serviceAccount.name | default (include "kvtier.name" $) }}
{{- end }}

{{- /* Of release.json, which a release's chart has (kvtier_release/release.py): its images as this cluster pulls them. */ -}}
{{- define "kvtier.released" -}}
{{- $release := $.Files.Get "release.json" | default "{}" | fromJson -}}
{{- $registry := ($.Values.global).imageRegistry | default $release.registry -}}
{{- $found := dict -}}
{{- range $name, $path := $release.images }}{{ $_ := set $found $name (printf "%s/%s" $registry $path) }}{{ end -}}
{{- if or $.Values.image.tag $.Values.image.digest (ne $.Values.image.repository "kvtier/operator") }}{{ $found = omit $found "operator" }}{{ end -}}
{{- if ne $.Values.image.repository "kvtier/operator" }}{{ $found = omit $found "doctor" }}{{ end -}}
{{- toJson $found }}
{{- end }}

{{- /* A repository without a host is under global.imageRegistry, as in kvtier_operator/planning/images.py; without one kvtier's own is at a host that cannot be. */ -}}
{{- define "kvtier.image" -}}
{{- with (include "kvtier.released" $ | fromJson).operator }}{{ . }}{{ else -}}
{{- $first := regexFind "^[^/]+/" $.Values.image.repository -}}
{{- $release := $.Files.Get "release.json" | default "{}" | fromJson -}}
{{- $registry := ternary "" (($.Values.global).imageRegistry | default $release.registry) (regexMatch "[.:]|^localhost/" $first) -}}
{{- $nobody := ternary "registry.invalid" "" (hasPrefix "kvtier/" $.Values.image.repository) -}}
{{- with $registry | default $nobody }}{{ . }}/{{ end }}
{{- with $.Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "kvtier.images" -}}
{{- $images := omit (include "kvtier.released" $ | fromJson) "operator" -}}
{{- range $name, $reference := $.Values.images }}{{ if $reference }}{{ $_ := set $images $name $reference }}{{ end }}{{ end -}}
{{- $given := list -}}
{{- range $name, $reference := $images }}{{ $given = append $given (printf "%s=%s" $name $reference) }}{{ end -}}
{{- join "," $given }}
{{- end }}

{{- define "kvtier.pullSecretNames" -}}
{{- $names := list -}}
{{- range ($.Values.global).imagePullSecrets }}{{ if kindIs "map" . }}{{ $names = append $names .name }}{{ else }}{{ $names = append $names . }}{{ end }}{{ end -}}
{{- join "," $names }}
{{- end }}

{{- define "kvtier.pullSecrets" -}}
{{- $secrets := $.Values.image.pullSecrets -}}
{{- with include "kvtier.pullSecretNames" $ }}{{ range splitList "," . }}{{ $secrets = append $secrets (dict "name" .) }}{{ end }}{{ end -}}
{{- toYaml (uniq $secrets) }}
{{- end }}

{{- define "kvtier.ownPodLabels" -}}
app.kubernetes.io/name: kvtier-operator
app.kubernetes.io/instance: {{ include "kvtier.name" $ }}
app.kubernetes.io/component: operator
app.kubernetes.io/part-of: kvtier
{{- end }}

{{- define "kvtier.ownLabels" -}}
{{ include "kvtier.ownPodLabels" $ }}
app.kubernetes.io/version: {{ $.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $.Chart.Name $.Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* Labels that everybody adds; selectors and the operator go by the chart's own. */ -}}
{{- define "kvtier.commonLabels" -}}
{{- $own := include "kvtier.ownLabels" $ | fromYaml -}}
{{- range $value, $labels := dict "commonLabels" $.Values.commonLabels "operator.podLabels" $.Values.operator.podLabels }}
{{- range $label, $_ := $labels }}
{{- if hasKey $own $label }}{{ fail (printf "%s: %s is set by the chart: remove it" $value $label) }}{{ end }}
{{- end }}
{{- end -}}
{{- $.Values.commonLabels | default dict | toYaml }}
{{- end }}

{{- define "kvtier.podLabels" -}}
{{- merge (include "kvtier.ownPodLabels" $ | fromYaml) (include "kvtier.commonLabels" $ | fromYaml) | toYaml }}
{{- end }}

{{- define "kvtier.testLabels" -}}
{{- $own := dict "app.kubernetes.io/name" "kvtier-test" "app.kubernetes.io/part-of" "kvtier" -}}
{{- merge $own (include "kvtier.commonLabels" $ | fromYaml) | toYaml }}
{{- end }}

{{- define "kvtier.labels" -}}
{{- merge (include "kvtier.ownLabels" $ | fromYaml) (include "kvtier.commonLabels" $ | fromYaml) | toYaml }}
{{- end }}

{{- /* "wait" where a live cluster has no KVCacheTier yet: Helm maps every kind before it creates the first object.
A live cluster lists kinds (v1/Pod), `helm template` only versions (v1). */ -}}
{{- define "kvtier.tiersWait" -}}
{{- $apis := $.Capabilities.APIVersions -}}
{{- if and ($apis.Has "v1/Pod") (not ($apis.Has "kvtier.dev/v1alpha1/KVCacheTier")) }}wait{{ end }}
{{- end }}
