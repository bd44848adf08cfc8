"""What a namespace, and the cluster's storage, refuse of a Plan before any pod is tried."""
