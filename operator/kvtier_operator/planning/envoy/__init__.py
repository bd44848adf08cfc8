"""Envoy's configuration: of a local run, and of the gateway that kvtier itself makes on a cluster."""
