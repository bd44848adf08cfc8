"""What pods have and where they run, the same for engines and pickers: variables, volumes, resources, nodes."""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.formats import LABEL, SUBDOMAIN_PATTERN, DnsLabel, DnsSubdomain
from kvtier_operator.api.quantity import Quantity, parse_quantity

VARIABLE_PATTERN: Final = r"^[A-Za-z_][A-Za-z0-9_.-]*$"
PATH_PATTERN: Final = "^/"
REQUEST_PATTERN: Final = f"^{LABEL}(/{LABEL})?$"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
MOST_NODE_REQUIREMENTS, MOST_TOLERATIONS = 64, 64
"""Each is asked of every node of the cluster, again whenever one changes."""
NodeSelector = Annotated[
    dict[str, Annotated[str, Field(max_length=63)]],
    Field(description="Labels a node must have to run these pods.", max_length=64),
]
PriorityClassName = Annotated[
    str | None,
    Field(
        description="Priority class of these pods, which must exist; the cluster's default when empty.",
        min_length=1,
        max_length=253,
        pattern=SUBDOMAIN_PATTERN,
    ),
]


class EnvVar(ApiModel):
    """An environment variable of a container."""

    name: str = Field(
        description="Name of the variable.",
        min_length=1,
        max_length=256,
        pattern=VARIABLE_PATTERN,
    )
    value: str | None = Field(
        None, description="Value of the variable; quote numbers and yes, no, on, off.", max_length=32768
    )
    value_from: dict[str, Any] | None = Field(
        None,
        description="Source of the value, as in a pod: secretKeyRef, configMapKeyRef, fieldRef or resourceFieldRef.",
        min_length=1,
        max_length=1,
    )

    @rule("!(has(self.value) && has(self.valueFrom))", "give value or valueFrom, not both")
    def has_one_source(self) -> bool:
        """A container's variable has a value or a source of one."""
        return self.value is None or self.value_from is None

    @rule(
        "self.name != 'LMCACHE_USE_EXPERIMENTAL'",
        "LMCACHE_USE_EXPERIMENTAL does nothing: LMCache and vLLM removed it; leave it out",
        field=".name",
    )
    def is_not_removed(self) -> bool:
        """A switch that is gone only misleads."""
        return self.name != "LMCACHE_USE_EXPERIMENTAL"


class EphemeralVolume(ApiModel):
    """A volume made with each pod and gone with it."""

    storage_class_name: DnsSubdomain | None = Field(
        None, description="Storage class; the cluster's default when empty."
    )


class PersistentVolumeClaim(ApiModel):
    """A claim that exists already."""

    claim_name: DnsSubdomain = Field(description="Name of the PersistentVolumeClaim.")


class HostPath(ApiModel):
    """A folder of the node."""

    path: str = Field(
        description="Absolute path on the node.", min_length=1, max_length=4096, pattern=PATH_PATTERN
    )


class Volume(ApiModel):
    """Where something is kept: exactly one of its fields."""

    empty_dir: dict[str, Any] | None = Field(
        None, description="The node's own disk, gone with the pod; write {}.", max_length=0
    )
    ephemeral: EphemeralVolume | None = Field(
        None, description="A volume made with each pod from a storage class."
    )
    persistent_volume_claim: PersistentVolumeClaim | None = Field(
        None, description="A claim that exists already."
    )
    host_path: HostPath | None = Field(
        None, description="A folder of the node, such as a mounted local NVMe."
    )

    @rule(
        "[has(self.emptyDir), has(self.ephemeral), has(self.persistentVolumeClaim), has(self.hostPath)].filter(x, x).size() == 1",
        "give exactly one of emptyDir, ephemeral, persistentVolumeClaim, hostPath",
    )
    def has_one_source(self) -> bool:
        """One volume is one place."""
        sources = (self.empty_dir, self.ephemeral, self.persistent_volume_claim, self.host_path)
        return sum(source is not None for source in sources) == 1

    @property
    def outlives_pods(self) -> bool:
        """Whether what one pod writes is there for the next."""
        return self.persistent_volume_claim is not None or self.host_path is not None


class TolerationOperator(StrEnum):
    """How a toleration's key and value are compared with a taint's."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(ApiModel):
    """A taint that pods tolerate, as in a pod."""

    key: str | None = Field(
        None, description="Taint key; all keys when empty (operator Exists only).", max_length=316
    )
    operator: TolerationOperator | None = Field(None, description="Exists or Equal; Equal when empty.")
    value: str | None = Field(None, description="Taint value, with Equal.", max_length=63)
    effect: TaintEffect | None = Field(None, description="Effect to tolerate; all effects when empty.")
    toleration_seconds: int | None = Field(
        None,
        description="How long a NoExecute taint is tolerated, in seconds; for ever when empty.",
        ge=-(2**31),
        le=2**31 - 1,
    )

    @rule(
        "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
        "a toleration without key must have operator Exists",
    )
    def has_key_or_exists(self) -> bool:
        """Kubernetes' own rule for pods, said before there is a pod."""
        return self.key is not None or self.operator is TolerationOperator.EXISTS

    @rule(
        "!has(self.value) || !has(self.operator) || self.operator == 'Equal'",
        "a toleration with operator Exists has no value",
    )
    def value_means_equal(self) -> bool:
        """Kubernetes' own rule for pods."""
        return self.value is None or self.operator is not TolerationOperator.EXISTS


class ResourceRequirements(ApiModel):
    """Compute resources that a resource's author asks for."""

    requests: dict[str, Quantity] = Field(
        default_factory=dict, description="Requests, as in a pod.", max_length=32
    )
    limits: dict[str, Quantity] = Field(
        default_factory=dict, description="Limits, as in a pod.", max_length=32
    )

    @rule(
        "!has(self.requests) || !has(self.limits) || self.requests.all(name, !(name in self.limits) || "
        "!quantity(string(self.requests[name])).isGreaterThan(quantity(string(self.limits[name]))))",
        "a request is more than the limit of the same name: raise the limit or lower the request",
        field=".requests",
    )
    def requests_within_limits(self) -> bool:
        """Kubernetes' own rule for pods, said before there is a pod."""
        return all(
            parse_quantity(asked) <= parse_quantity(self.limits[name])
            for name, asked in self.requests.items()
            if name in self.limits
        )


class PodClaim(ApiModel):
    """Devices that Kubernetes allocates to a pod (dynamic resource allocation), as in a pod."""

    name: DnsLabel = Field(description="Name of the claim within the pod.")
    resource_claim_template_name: DnsSubdomain | None = Field(
        None, description="ResourceClaimTemplate in the resource's namespace: a claim is made with each pod."
    )
    resource_claim_name: DnsSubdomain | None = Field(
        None, description="ResourceClaim in the resource's namespace: all pods share its devices."
    )

    @rule(
        "has(self.resourceClaimTemplateName) != has(self.resourceClaimName)",
        "give either resourceClaimTemplateName or resourceClaimName",
    )
    def has_one_source(self) -> bool:
        """Kubernetes' own rule for pods."""
        return (self.resource_claim_template_name is None) != (self.resource_claim_name is None)


class ContainerClaim(ApiModel):
    """A claim of the pod that a container gets, as in a pod."""

    name: DnsLabel = Field(description="Name of a claim in resourceClaims.")
    request: str | None = Field(
        None,
        description="Request of the claim that it gets; all of them when empty.",
        min_length=1,
        max_length=127,
        pattern=REQUEST_PATTERN,
    )


class EngineResources(ResourceRequirements):
    """Those of the engine, which computes on devices."""

    claims: list[ContainerClaim] = Field(
        default_factory=list,
        description="Claims of engine.resourceClaims that the engine's container gets; all of them when empty.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


Tolerations = Annotated[
    list[Toleration],
    Field(
        description="Taints these pods tolerate.",
        max_length=MOST_TOLERATIONS,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    ),
]


def _few_requirements(affinity: dict[str, Any] | None) -> dict[str, Any] | None:
    """Its shape is the API server's to check, so any may come."""
    node: Any = affinity
    for name in ("nodeAffinity", _REQUIRED, "nodeSelectorTerms"):
        node = node.get(name) if isinstance(node, dict) else None
    count = sum(_requirements(term) for term in node) if isinstance(node, list) else 0
    if count > MOST_NODE_REQUIREMENTS:
        message = (
            f"nodeAffinity requires {count} things of nodes in all its terms, {MOST_NODE_REQUIREMENTS} at "
            "most: put several names into the values of one, or label the nodes"
        )
        raise PydanticCustomError("node_requirements", "{reason}", {"reason": message})
    return affinity


def _requirements(term: object) -> int:
    lists = [term.get(name) for name in ("matchExpressions", "matchFields")] if isinstance(term, dict) else []
    return max(1, sum(len(requirements) for requirements in lists if isinstance(requirements, list)))


Affinity = Annotated[
    dict[str, Any] | None,
    Field(description="Affinity of these pods, as in a pod."),
    AfterValidator(_few_requirements),
]


def _template_of_few_requirements(template: dict[str, Any] | None) -> dict[str, Any] | None:
    spec = template.get("spec") if template else None
    affinity = spec.get("affinity") if isinstance(spec, dict) else None
    if isinstance(affinity, dict):
        _few_requirements(affinity)
    return template


PodTemplate = Annotated[
    dict[str, Any] | None,
    Field(
        description="What to add to these pods or change in them, as in a pod's template (metadata, spec): a strategic-merge patch. What kvtier plans, and what gives a pod power over its node, is refused."
    ),
    AfterValidator(_template_of_few_requirements),
]
