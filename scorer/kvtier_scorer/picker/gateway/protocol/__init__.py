"""Envoy's external processing as endpoint pickers speak it, one stream at a time, without I/O.

Source: docs/proposals/004-endpoint-picker-protocol of kubernetes-sigs/gateway-api-inference-extension, and
envoy/service/ext_proc/v3/external_processor.proto.
"""
