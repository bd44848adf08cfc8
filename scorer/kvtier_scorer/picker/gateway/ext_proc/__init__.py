"""The service that gateways call: envoy.service.ext_proc.v3.ExternalProcessor."""
