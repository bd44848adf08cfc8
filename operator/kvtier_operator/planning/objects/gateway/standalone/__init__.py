"""The objects of kvtier's own gateway, one a file: Envoy before the picker, without Gateway API."""
