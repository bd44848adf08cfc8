"""`spec.router`: the endpoint picker and the way to it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import Field

from kvtier_common.tier import OF_A_POD
from kvtier_operator.api.base import ApiModel, cel_validation, rule
from kvtier_operator.api.formats import IMAGE_NAME_PATTERN, SUBDOMAIN, DnsLabel, DnsSubdomain, IPBlock
from kvtier_operator.api.quantity import ByteQuantity, parse_bytes
from kvtier_operator.api.spec.model import ServedName
from kvtier_operator.api.spec.pod import (
    Affinity,
    NodeSelector,
    PodTemplate,
    PriorityClassName,
    ResourceRequirements,
    Tolerations,
)
from kvtier_operator.api.spec.tiers import with_tiers

HOST_PATTERN: Final = rf"^(\*\.)?{SUBDOMAIN}$"
"""As Gateway API's (v1, apis/v1/shared_types.go, Hostname), which would refuse the route."""
URL_PATH_PATTERN: Final = r"^(/|(/\.?[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+)$"
"""`/`, or segments none of which is empty or of dots alone: nothing that a proxy would write otherwise."""
VERSION_PATTERN: Final = r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?$"
SUPPORTED_VERSIONS: Final = ("0.9", "0.10", "1.4", "1.5")
"""Of upstream's pickers; kvtier_scorer.config has their configurations."""
_LEAST_BODY_BYTES: Final = 2**16
_MOST_BODY_BYTES: Final = 2**30


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


class ApiKeys(ApiModel):
    """Who may ask kvtier's own gateway: clients that show a key."""

    secret_name: DnsSubdomain = Field(
        description="Secret of this namespace: each entry is one key of 16 to 4,096 characters, its name the client's. A changed Secret is taken without a restart, an entry that is no such key left out."
    )
    requests_per_minute: int | None = Field(
        None,
        description="Requests of each key in a minute, and at once, on each Envoy; more get 429. No bound when empty.",
        ge=1,
        le=1_000_000,
    )


class Standalone(ApiModel):
    """kvtier's own gateway: Envoy before the picker, behind the Service NAME-gateway."""

    tls_secret_name: DnsSubdomain | None = Field(
        None,
        description="Secret of this namespace with tls.crt and tls.key, which the gateway serves HTTPS with on port 443; HTTP on port 80 when empty.",
    )
    api_keys: ApiKeys | None = Field(
        None,
        description="Asks each request but GET and HEAD of /health and /ping for a key, as Authorization: Bearer KEY, which then goes no further. Anybody may ask when empty.",
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
        description="Envoy's compute resources, over kvtier's own: 500m of CPU and 256Mi of memory as requests, 1Gi of memory as a limit, or as much more as twelve bodies of maxBodySize: four at a time, three copies each. Near the limit it refuses requests.",
    )
    pod_template: PodTemplate = None
    models: list[OtherModel] = Field(
        default_factory=list,
        description="Other KVCacheTiers behind the same URL: requests whose body names one of these models go on to them. All others are this resource's, those with more than 524,288 values in their body among them. A container model-router, whose memory follows maxBodySize, reads the names.",
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


class Gateway(ApiModel):
    """Makes the HTTPRoute and what the provider needs beside it, or a gateway of kvtier's own."""

    parent_ref: ParentRef | None = Field(
        None, description="The Gateway that takes the requests; required unless the provider is standalone."
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


class Flavor(StrEnum):
    """Which endpoint picker routes."""

    LLM_D = "llm-d"
    GAIE = "gaie"
    BUILTIN = "builtin"


def flavor_of(version: str) -> Flavor:
    """Whose picker has one of SUPPORTED_VERSIONS: llm-d's are 0.x."""
    return Flavor.LLM_D if version.startswith("0.") else Flavor.GAIE


class FailureMode(StrEnum):
    """What the gateway does when the picker does not answer."""

    FAIL_OPEN = "FailOpen"
    FAIL_CLOSE = "FailClose"


@with_tiers(
    lambda tier: (
        int,
        Field(tier.weight, description=f"Weight of the {tier.title} prefix scorer.", ge=0, le=1000),
    ),
    "_prefix",
    OF_A_POD,
)
class Weights(ApiModel):
    """Weights of the scorers; only their ratios matter."""

    queue: int = Field(2, description="Weight of the waiting-queue scorer.", ge=0, le=1000)
    kv_cache_utilization: int = Field(
        2, description="Weight of the KV-cache utilisation scorer.", ge=0, le=1000
    )

    @rule(
        lambda weights: f"{' + '.join(f'self.{field.alias}' for field in weights.model_fields.values())} > 0",
        "at least one weight must be more than 0",
    )
    def weighs_something(self) -> bool:
        """Scores that all weigh nothing cannot tell pods apart."""
        return any(self.by_scorer().values())

    def by_scorer(self) -> Mapping[str, int]:
        """The weights by the names of the scorers (kvtier_scorer.config.model)."""
        return {name: getattr(self, name) for name in type(self).model_fields}


class BodySize(ByteQuantity):
    """The largest body that a picker takes."""

    __slots__ = ()

    cel_rules: ClassVar = (
        cel_validation(
            f"type(self) == int ? self >= {_LEAST_BODY_BYTES} && self <= {_MOST_BODY_BYTES} : isQuantity(self) && "
            "!quantity(self).isLessThan(quantity('64Ki')) && !quantity(self).isGreaterThan(quantity('1Gi'))",
            "must be a quantity of bytes from 64Ki to 1Gi, such as 64Mi",
        ),
    )

    def _check(self) -> None:
        self.bytes = parse_bytes(self)
        if not _LEAST_BODY_BYTES <= self.bytes <= _MOST_BODY_BYTES:
            raise ValueError(f"'{self}' is no size for a body; it must be from 64Ki to 1Gi")


class NetworkPolicyOptions(ApiModel):
    """Who may ask the picker, and who may hear the engines' KV events; a network without policies ignores it."""

    enabled: bool | None = Field(
        None,
        description="Make NetworkPolicies. Empty: for the engines' KV events always, for the picker where it is known who asks: with gateway provider istio, kgateway, agentgateway or standalone, or with namespaces or ipBlocks here.",
    )
    namespaces: list[DnsLabel] = Field(
        default_factory=list,
        description="Namespaces of the gateway's proxies, beside the Gateway's and the resource's own.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    ip_blocks: list[IPBlock] = Field(
        default_factory=list,
        description="Addresses of proxies outside of the cluster's pods, such as 10.129.0.0/23.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )

    @rule(
        "!has(self.enabled) || self.enabled || ((!has(self.namespaces) || size(self.namespaces) == 0) && (!has(self.ipBlocks) || size(self.ipBlocks) == 0))",
        "namespaces and ipBlocks are of the policy that enabled: false leaves out; keep one or the other",
    )
    def peers_have_a_policy(self) -> bool:
        """Somebody who names who may ask believes that others may not."""
        return self.enabled is not False or not (self.namespaces or self.ip_blocks)


class HintsPolicy(StrEnum):
    """Whose hints kvtier's own picker passes on."""

    ACCEPT = "Accept"
    HEADERS = "Headers"
    REFUSE = "Refuse"


class ShareSource(StrEnum):
    """Who says whose share of the tiers a prompt's blocks are."""

    HEADER = "Header"
    CLIENT = "Client"


class RouterSpec(ApiModel):
    """The endpoint picker."""

    flavor: Flavor = Field(
        Flavor.LLM_D,
        description="llm-d: llm-d-router; gaie: the Gateway API inference extension's picker; builtin: kvtier's own.",
    )
    version: str | None = Field(
        None,
        description="Version of the flavour's picker, which decides its configuration's form: llm-d 0.9 and 0.10 (a later 0.x with a warning), gaie 1.4 and 1.5. Empty: the one kvtier was tested with.",
        pattern=VERSION_PATTERN,
        max_length=32,
    )
    image: str | None = Field(
        None,
        description="Picker image; chosen by flavour and version when empty.",
        min_length=1,
        max_length=512,
        pattern=IMAGE_NAME_PATTERN,
    )
    replicas: int = Field(
        1,
        description="Pickers, of which one serves: more are standbys that take over, with an empty index, when it ends; they do not serve more requests.",
        ge=1,
        le=16,
    )
    kv_events: bool = Field(
        default=False,
        description="builtin: the engines publish what their caches take in and let go (vLLM's KV events), and the picker follows them instead of guessing.",
    )
    max_body_size: BodySize | None = Field(
        None,
        description="builtin: largest body of a request, as images in it need; empty: 8Mi, or 16 bytes for each token of a longer model, up to 32Mi. The picker's memory limit follows.",
    )
    expose_endpoint: bool = Field(
        default=False,
        description="builtin: answers tell clients, in the header x-gateway-destination-endpoint-served, the address of the engine that served them. Whoever knows it can find out which engine holds a prompt.",
    )
    hints: HintsPolicy = Field(
        HintsPolicy.ACCEPT,
        description="builtin: what requests may say of their blocks. Accept: in the body (kv_transfer_params.kvtier) and in headers (x-kvtier-retain and so on), which are put into the body. Headers: in headers alone, for a gateway that sets them; what a body says is taken out. Refuse: neither. nostore always counts.",
    )
    share_from: ShareSource = Field(
        ShareSource.HEADER,
        description="builtin: whose share of the tiers a prompt's blocks are. Header: as the hint share says, by the rule of hints. Client: the name of the client's key in gateway.standalone.apiKeys, whatever a request says.",
    )
    weights: Weights = Field(default_factory=Weights, description="Weights of the scorers.")
    failure_mode: FailureMode = Field(
        FailureMode.FAIL_OPEN, description="What the gateway does when the picker does not answer."
    )
    resources: ResourceRequirements = Field(
        default_factory=ResourceRequirements,
        description="The picker's compute resources, over kvtier's own: 500m of CPU and what its index needs of memory as requests, twice that memory as a limit, or what requests under way take beside it: in the builtin picker at worst, in others a million tokens an engine. A value given here stands; what is left out stays within it.",
    )
    node_selector: NodeSelector = Field(default_factory=dict)
    tolerations: Tolerations = Field(default_factory=list)
    affinity: Affinity = None
    priority_class_name: PriorityClassName = None
    pod_template: PodTemplate = None
    gateway: Gateway | None = Field(
        None,
        description="The way in: an HTTPRoute on a Gateway, or with provider standalone an Envoy of kvtier's own; leave out to bring your own route.",
    )
    network_policy: NetworkPolicyOptions = Field(
        default_factory=NetworkPolicyOptions,
        description="Who may ask the picker and hear the engines' KV events.",
    )

    @rule(
        "self.flavor != 'builtin' || self.replicas == 1",
        "kvtier's own picker runs once: two would each know half of what the engines hold, and one that fails is passed by (failureMode); set replicas to 1",
        field=".replicas",
    )
    def builtin_runs_once(self) -> bool:
        """Upstream's pickers elect a leader; kvtier's own does not."""
        return self.flavor is not Flavor.BUILTIN or self.replicas == 1

    @rule(
        "self.flavor == 'builtin' || !has(self.maxBodySize)",
        "only kvtier's own picker has a bound for bodies; set flavor to builtin or leave maxBodySize out",
        field=".maxBodySize",
    )
    def size_has_a_reader(self) -> bool:
        """Other pickers have no such setting."""
        return self.flavor is Flavor.BUILTIN or self.max_body_size is None

    @rule(
        "self.flavor == 'builtin' || !self.exposeEndpoint",
        "only kvtier's own picker tells clients which engine served them; set flavor to builtin or leave exposeEndpoint out",
        field=".exposeEndpoint",
    )
    def endpoint_has_a_teller(self) -> bool:
        """Other pickers have no such setting."""
        return self.flavor is Flavor.BUILTIN or not self.expose_endpoint

    @rule(
        "self.flavor == 'builtin' || !self.kvEvents",
        "only kvtier's own picker is configured for KV events; set flavor to builtin or leave kvEvents out",
        field=".kvEvents",
    )
    def events_have_a_reader(self) -> bool:
        """Other pickers would leave the engines publishing for nobody."""
        return self.flavor is Flavor.BUILTIN or not self.kv_events

    @rule(
        "self.flavor == 'builtin' || self.hints == 'Accept'",
        "only kvtier's own picker looks at hints; set flavor to builtin or leave hints out",
        field=".hints",
    )
    def hints_have_a_reader(self) -> bool:
        """Other pickers pass bodies on as they are."""
        return self.flavor is Flavor.BUILTIN or self.hints is HintsPolicy.ACCEPT

    @rule(
        "self.shareFrom == 'Header' || (self.flavor == 'builtin' && has(self.gateway) && has(self.gateway.standalone) && has(self.gateway.standalone.apiKeys))",
        "a client has a name by its key alone, which kvtier's own picker and gateway tell: set flavor to builtin and gateway.standalone.apiKeys, or leave shareFrom out",
        field=".shareFrom",
    )
    def clients_have_names(self) -> bool:
        """A share of nobody's would be everybody's."""
        named = self.standalone is not None and self.standalone.api_keys is not None
        return self.share_from is ShareSource.HEADER or (self.flavor is Flavor.BUILTIN and named)

    @property
    def standalone(self) -> Standalone | None:
        """Settings of kvtier's own gateway; None where there is none."""
        return self.gateway.own if self.gateway else None
