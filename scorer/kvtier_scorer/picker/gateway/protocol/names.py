"""Names that the protocol gives to headers and metadata."""

from typing import Final

DESTINATION: Final = "x-gateway-destination-endpoint"
"""Header, and key of the metadata, with the picked endpoint."""
METADATA_NAMESPACE: Final = "envoy.lb"
SERVED: Final = "x-gateway-destination-endpoint-served"
"""Metadata, or a header where a gateway has no metadata, with the endpoint that answered."""
SUBSET_NAMESPACE: Final = "envoy.lb.subset_hint"
SUBSET: Final = "x-gateway-destination-endpoint-subset"
PRIORITY: Final = "x-kvtier-priority"
"""Header of a request: below 0 it may be shed while every pod is saturated. This picker's own."""
REQUEST_ID: Final = "x-request-id"
RESOURCE: Final = "x-kvtier-resource"
"""Header of a request whose model another KVCacheTier serves: its name, by which kvtier's gateway routes."""
