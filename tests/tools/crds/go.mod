// Modules that carry the CRDs of objects which kvtier renders; nothing of them is compiled.
module kvtier.dev/tests/tools/crds

go 1.24.0

require (
	github.com/kedacore/keda/v2 v2.19.0
	github.com/prometheus-operator/prometheus-operator v0.85.0
	istio.io/api v1.28.0
	sigs.k8s.io/gateway-api v1.4.1
	sigs.k8s.io/gateway-api-inference-extension v1.5.0
)
