"""The autoscaler of the engines: Kubernetes' own, or KEDA's."""
