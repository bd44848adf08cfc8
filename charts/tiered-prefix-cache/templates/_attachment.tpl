{{- /* Generated from operator/kvtier_operator/install, do not edit: run `make generate`. */ -}}
{{- define "kvtier.attachmentApi" }}
{{- if $.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}admissionregistration.k8s.io/v1{{ else if $.Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy" }}admissionregistration.k8s.io/v1beta1{{- end }}
{{- end }}
{{- define "kvtier.connectorImage" }}
{{- $released := (include "kvtier.released" $ | fromJson).connector }}
{{- with ($.Values.images).connector | default $released }}{{ . }}{{ else }}
{{- ($.Values.global).imageRegistry | default "registry.invalid" }}/kvtier/connector:0.1.0{{ end }}
{{- end }}
