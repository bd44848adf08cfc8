"""`spec.router.gateway`: the way to the endpoint picker."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.formats.dns_names import SUBDOMAIN, DnsLabel, DnsSubdomain
from kvtier_operator.api.formats.image_name import IMAGE_NAME_PATTERN
from kvtier_operator.api.spec.model import ServedName
from kvtier_operator.api.spec.scheduling import ResourceRequirements

HOST_PATTERN: Final = rf"^(\*\.)?{SUBDOMAIN}$"
"""As Gateway API's (v1, apis/v1/shared_types.go, Hostname), which would refuse the route."""
URL_PATH_PATTERN: Final = r"^(/|(/\.?[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)$"
"""`/`, or segments none of which is empty or of dots alone: nothing that a proxy would write otherwise."""


class GatewayProvider(StrEnum):
    """Who takes the requests: gateways that need objects of their own beside the HTTPRoute, or kvtier itself."""

    NONE = "none"
    ISTIO = "istio"
    GKE = "gke"
    KGATEWAY = "kgateway"
    AGENTGATEWAY = "agentgateway"
    STANDALONE = "standalone"


class ParentRef(ApiModel):
    """The Gateway that takes the requests."""

    name: DnsSubdomain = Field(description="Name of the Gateway.")
    namespace: DnsLabel | None = Field(
        None, description="Namespace of the Gateway; the resource's own when empty."
    )
    section_name: DnsSubdomain | None = Field(None, description="Listener of the Gateway; all when empty.")


class OtherModel(ApiModel):
    """A model of another KVCacheTier, for which clients ask here too."""

    name: ServedName = Field(description="The model as requests name it, such as Qwen/Qwen3-8B.")
    resource: DnsLabel = Field(
        description="KVCacheTier of this namespace that serves it, with gateway provider standalone and no TLS."
    )


class Standalone(ApiModel):
    """kvtier's own gateway: Envoy before the picker, behind the Service NAME-gateway."""

    tls_secret_name: DnsSubdomain | None = Field(
        None,
        description="Secret of this namespace with tls.crt and tls.key, which the gateway serves HTTPS with on port 443; HTTP on port 80 when empty.",
    )
    replicas: int = Field(
        1, description="Envoys; unlike pickers, all of them serve, and ask the same picker.", ge=1, le=16
    )
    image: str | None = Field(
        None,
        description="Envoy's image; the one kvtier was tested with when empty.",
        min_length=1,
        max_length=512,
        pattern=IMAGE_NAME_PATTERN,
    )
    resources: ResourceRequirements = Field(
        default_factory=ResourceRequirements,
        description="Envoy's compute resources, over kvtier's own: 500m of CPU and 256Mi of memory as requests, 1Gi of memory as a limit, or what four bodies of maxBodySize need. Near the limit it refuses requests.",
    )
    models: list[OtherModel] = Field(
        default_factory=list,
        description="Other KVCacheTiers behind the same URL: requests whose body names one of these models go on to them. All others are this resource's, those with more than 524,288 values in their body among them. A container model-router, whose memory follows maxBodySize, reads the names.",
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


class Gateway(ApiModel):
    """Makes the HTTPRoute and what the provider needs beside it, or a gateway of kvtier's own."""

    parent_ref: ParentRef | None = Field(
        None, description="The Gateway that takes the requests; needed but with provider standalone."
    )
    hostnames: list[Annotated[str, Field(min_length=1, max_length=253, pattern=HOST_PATTERN)]] = Field(
        default_factory=list,
        description="Host names the route serves, such as llm.example.com or *.example.com; all when empty.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    own_path: bool = Field(
        default=False,
        description="Serve below the path /NAMESPACE/NAME instead of all paths, so that several models share host names: clients ask https://HOST/NAMESPACE/NAME/v1. The engine sees paths without it.",
    )
    extra_paths: list[Annotated[str, Field(min_length=1, max_length=64, pattern=URL_PATH_PATTERN)]] = Field(
        default_factory=list,
        description="Paths of the engines that clients may ask in addition to inference, such as /metrics, each with everything below it; all others get 404. An entry / passes every path, including those that stop engines or replace their weights.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    provider: GatewayProvider = Field(
        GatewayProvider.NONE,
        description="Gateway implementation, for the objects that it needs beside the route. standalone: none, kvtier runs an Envoy itself; no Gateway API is needed.",
    )
    standalone: Standalone | None = Field(None, description="Settings of provider standalone.")

    @rule(
        "has(self.parentRef) != (self.provider == 'standalone')",
        "every provider but standalone needs the Gateway's name here, and standalone has no Gateway",
        field=".parentRef",
    )
    def names_a_gateway_where_there_is_one(self) -> bool:
        """Nothing else takes the requests."""
        return (self.parent_ref is not None) != (self.provider is GatewayProvider.STANDALONE)

    @rule(
        "self.provider != 'standalone' || (!self.ownPath && (!has(self.hostnames) || size(self.hostnames) == 0))",
        "standalone serves one resource, for every host and path; remove hostnames and ownPath",
        field=".provider",
    )
    def hosts_and_paths_are_a_routes(self) -> bool:
        """They would be left out in silence."""
        return self.provider is not GatewayProvider.STANDALONE or not (self.hostnames or self.own_path)

    @rule(
        "self.provider == 'standalone' || !has(self.standalone)",
        "these are settings of provider standalone; set that, or remove them",
        field=".standalone",
    )
    def settings_have_a_gateway(self) -> bool:
        """Other gateways have settings of their own."""
        return self.provider is GatewayProvider.STANDALONE or self.standalone is None

    @property
    def own(self) -> Standalone | None:
        """Settings of kvtier's own gateway; None with any other."""
        if self.provider is not GatewayProvider.STANDALONE:
            return None
        return self.standalone or Standalone()
