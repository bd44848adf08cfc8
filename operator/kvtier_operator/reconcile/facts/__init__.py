"""Pure readers: what the status of a Deployment, a pod or a route says."""
