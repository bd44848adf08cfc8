{{- /* Generated from operator/kvtier_operator/install, do not edit: run `make generate`. */ -}}
{{- define "kvtier.namespacedRules" }}
# what is wanted; and whether it is still, before a child that has vanished is made again
- apiGroups: [kvtier.dev]
  resources: [kvcachetiers]
  verbs: [get, list, watch]
# what was done about it: conditions, replicas, tiers
- apiGroups: [kvtier.dev]
  resources: [kvcachetiers/status]
  verbs: [patch]
# children: configuration, identities and addresses of engines, picker and gateway; and the ConfigMap with a model's configuration that a resource names
- apiGroups: [""]
  resources: [configmaps, serviceaccounts, services]
  verbs: [list, watch, create, patch, delete]
# children: engines, picker and gateway, and how many of them are ready
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch, create, patch, delete]
# whether a pod is an engine of its own Deployment, before it is asked what its tiers hold
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [get]
# children: who may ask the picker, and hear the engines' KV events
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [list, watch, create, patch, delete]
# child: what says how many engines there are, with spec.autoscaling
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, watch, create, patch, delete]
# child: the same where the cluster has KEDA
- apiGroups: [keda.sh]
  resources: [scaledobjects]
  verbs: [list, watch, create, patch, delete]
# children: a drain takes one engine or gateway at a time
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch, create, patch, delete]
# children: what the picker may read, in its namespace; the API server lets nobody grant more than they hold
- apiGroups: [rbac.authorization.k8s.io]
  resources: [rolebindings, roles]
  verbs: [list, watch, create, patch, delete]
# child: the pool that a route sends to
- apiGroups: [inference.networking.k8s.io]
  resources: [inferencepools]
  verbs: [list, watch, create, patch, delete]
# child: the route, with spec.router.gateway; others, to tell which of them gets its requests
- apiGroups: [gateway.networking.k8s.io]
  resources: [httproutes]
  verbs: [list, watch, create, patch, delete]
# child: TLS from Istio to the picker, with spec.router.gateway.provider istio
- apiGroups: [networking.istio.io]
  resources: [destinationrules]
  verbs: [list, watch, create, patch, delete]
# children: health check and timeout of GKE's load balancer, with provider gke
- apiGroups: [networking.gke.io]
  resources: [gcpbackendpolicies, healthcheckpolicies]
  verbs: [list, watch, create, patch, delete]
# children: monitoring objects, with spec.observability
- apiGroups: [monitoring.coreos.com]
  resources: [prometheusrules, servicemonitors]
  verbs: [list, watch, create, patch, delete]
# children: what GKE's managed Prometheus scrapes, with spec.observability and provider gke
- apiGroups: [monitoring.googleapis.com]
  resources: [podmonitorings]
  verbs: [list, watch, create, patch, delete]
# why an engine is not ready (its containers' messages)
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
# with spec.attach: whether pods may ask for as much more as the tier takes
- apiGroups: [""]
  resources: [limitranges, resourcequotas]
  verbs: [list]
# with spec.attach: whether the namespace lets its pods be changed
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
# what changed, for kubectl describe
- apiGroups: [""]
  resources: [events]
  verbs: [create]
# what pickers choose among
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
# the pool that a picker picks for
- apiGroups: [inference.networking.k8s.io]
  resources: [inferencepools]
  verbs: [get]
# upstream's pickers watch them
- apiGroups: [inference.networking.x-k8s.io]
  resources: [inferencemodelrewrites, inferenceobjectives]
  verbs: [get, list, watch]
# llm-d's picker watches them under its own group
- apiGroups: [llm-d.ai]
  resources: [inferencemodelrewrites, inferenceobjectives]
  verbs: [get, list, watch]
{{- if $.Values.rbac.pickerLeaderElection }}
# pickers with spec.router.replicas above 1 elect a leader
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, create, update, patch, delete]
# leader election reports its changes as events
- apiGroups: [""]
  resources: [events]
  verbs: [patch]
{{- end }}
{{- if $.Values.rbac.podDeletionCost }}
# with spec.autoscaling, engines that hold least go first: their annotation controller.kubernetes.io/pod-deletion-cost
- apiGroups: [""]
  resources: [pods]
  verbs: [patch]
{{- end }}
{{- if $.Values.rbac.storePassword }}
# with spec.tiers.remote.managed, the Secret with the store's password: made once, never read
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- end }}
{{- end }}
{{- define "kvtier.clusterRules" }}
# NodesFit: labels, taints and allocatable memory, huge pages, disk and GPUs
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
# BudgetFits: whether the storage class of a volume is there
- apiGroups: [storage.k8s.io]
  resources: [storageclasses]
  verbs: [list, watch]
# with spec.attach: whether the cluster has the policy by which pods are given a tier
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingadmissionpolicies]
  verbs: [list]
{{- end }}
