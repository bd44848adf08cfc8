"""The chart's values: the one source of values.yaml, values.schema.json and the README's table."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from kvtier_operator.api.formats import LABEL
from kvtier_operator.api.spec.pod import VARIABLE_PATTERN
from kvtier_operator.api.spec.tiers import Backend
from kvtier_operator.install.deployment import CONTAINER_SECURITY, POD_SECURITY, RESOURCES
from kvtier_operator.planning.backends import backends_that, traits_of
from kvtier_operator.planning.base.owner_policy import ALLOW, DENY, ENTRIES
from kvtier_operator.planning.images import (
    CONNECTOR_VERSION,
    DOCTOR_VERSION,
    KVTIER_REPOSITORY,
    REFERENCE_PATTERN,
    REGISTRY_PATTERN,
    REPOSITORY_PATTERN,
    SECRET_PATTERN,
    TAG_PATTERN,
    ImageName,
)
from kvtier_operator.planning.objects.monitoring.grafana import SIDECAR_LABEL

_SecretName = Annotated[str, Field(pattern=f"^{SECRET_PATTERN}$", max_length=253)]
_Switch = Literal["allow", "deny"]
_ObjectName = Annotated[str, Field(pattern=f"^({LABEL})?$", max_length=63)]
_Namespace = Annotated[str, Field(pattern=f"^{LABEL}$", max_length=63)]
SOURCE: Final = "operator/kvtier_operator/generate/chart/values.py"


class ChartModel(BaseModel):
    """A part of the values: camelCase outside, refuses what it does not know."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


def _part(model: type[ChartModel], **more: Any) -> Any:  # noqa: ANN401 - pydantic's own signature
    return Field(default_factory=model, description=model.__doc__, **more)


class PullSecret(ChartModel):
    """A Secret with a registry's credentials."""

    name: _SecretName = Field(description="Its name.")


class Global(ChartModel):
    """Values that charts share; others than these are not read."""

    model_config = ConfigDict(extra="allow")

    image_registry: str = Field(
        "",
        description="Takes the place of the registry of every image, the operator's and those of engines "
        "and pickers: HOST[:PORT][/PATH]. ghcr.io/llm-d/x:1 becomes HOST/llm-d/x:1. Changing it restarts "
        "engines.",
        pattern=f"^({REGISTRY_PATTERN})?$",
    )
    image_pull_secrets: list[_SecretName | PullSecret] = Field(
        default_factory=list,
        description="Secrets to pull all images with: names, or [{name: ...}] as in a pod. Each must be in "
        "the operator's namespace and in that of every KVCacheTier. Changing them restarts engines.",
    )


class Image(ChartModel):
    """The operator's image."""

    repository: str = Field(
        KVTIER_REPOSITORY,
        description="Image without its tag; the engines' pods begin with it too. With a host of its own it "
        "is not given global.imageRegistry.",
        pattern=f"^{REPOSITORY_PATTERN}$",
    )
    tag: str = Field("", description="Tag; the chart's appVersion when empty.", pattern=f"^({TAG_PATTERN})?$")
    digest: str = Field(
        "",
        description="Digest such as sha256:...; wins over the tag. Of the operator's pod: for the engines' "
        "pods see images.doctor.",
        pattern="^(sha256:[0-9a-f]{64})?$",
    )
    pull_policy: str = Field(
        "IfNotPresent", description="Image pull policy.", pattern="^(Always|IfNotPresent|Never)$"
    )
    pull_secrets: list[dict[str, str]] = Field(
        default_factory=list,
        description="Secrets to pull it with, as in a pod: [{name: ...}]. For all: global.imagePullSecrets.",
    )


def _reference(what: str) -> Any:  # noqa: ANN401 - as above
    return Field("", description=what, pattern=f"^({REFERENCE_PATTERN})?$")


def _engines(image: ImageName) -> Any:  # noqa: ANN401 - as above
    """Of the backends, and where it is not for all, the devices that take an image."""
    taken = [
        (backend, device)
        for backend in Backend
        for device, name in traits_of(backend).images.items()
        if name is image
    ]
    backends, devices = (dict.fromkeys(column) for column in zip(*taken, strict=True))
    what = f"backend{'s' if len(backends) > 1 else ''} {' and '.join(backends)}"
    return _reference(f"Engines of {what}{f' on {next(iter(devices))}' if len(devices) == 1 else ''}.")


class Images(ChartModel):
    """Whole references of images that KVCacheTiers do not name, such as registry.example/engine@sha256:..."""

    doctor: str = _reference(
        f"The doctor in engines' pods: kvtier's image of release {DOCTOR_VERSION}. Changing it "
        "restarts engines."
    )
    connector: str = _reference(
        f"The connector of engines of backend {', '.join(backends_that(lambda traits: traits.in_payload))}: "
        f"kvtier's image of release {CONNECTOR_VERSION}. Changing it restarts them."
    )
    vllm: str = _engines(ImageName.VLLM)
    vllm_cpu: str = _engines(ImageName.VLLM_CPU)
    lmcache: str = _engines(ImageName.LMCACHE)
    picker_llm_d: str = _reference("Pickers of flavor llm-d that name no version.")
    picker_gaie: str = _reference("Pickers of flavor gaie that name no version.")
    picker_builtin: str = _reference("Pickers of flavor builtin that name no version.")
    envoy: str = _reference("Envoy of KVCacheTiers with gateway provider standalone.")
    valkey: str = _reference("Valkey of KVCacheTiers with spec.tiers.remote.managed.")


def _or_list(limit: str) -> Any:  # noqa: ANN401 - pydantic's own type
    """JSON Schema asks for the pattern of texts alone, so that Helm names the one wrong entry."""
    items = {"type": "string", "pattern": ENTRIES[limit].pattern}
    return WithJsonSchema({"type": ["string", "array"], "pattern": f"^({ALLOW}|{DENY})$", "items": items})


def _limit(what: str) -> Any:  # noqa: ANN401 - pydantic's own signature
    return Field("allow", description=what)


class OwnerLimits(ChartModel):
    """What the operator lets KVCacheTiers ask for: allow, deny or a list of what is allowed."""

    host_path: Annotated[str | list[str], _or_list("host_path")] = _limit(
        "Folders of the node, without what is below them: [/mnt/nvme0]."
    )
    root_engines: _Switch = _limit(
        "Engines that are root, which hostPath, memlock Require and a podTemplate make them: allow or deny."
    )
    ipc_lock: _Switch = _limit("The capability IPC_LOCK, which memlock Require takes: allow or deny.")
    images: Annotated[str | list[str], _or_list("images")] = _limit(
        "Images that resources name, by repository or a start of it that ends in /: [registry.example/team/]."
    )
    host_names: Annotated[str | list[str], _or_list("host_names")] = _limit(
        "Host names of routes: [llm.example.com, '*.team.example.com']; deny: no routes."
    )
    foreign_gateways: Annotated[str | list[str], _or_list("foreign_gateways")] = _limit(
        "Gateways of other namespaces: [NAMESPACE] or [NAMESPACE/NAME]."
    )
    pod_templates: _Switch = _limit(
        "What a podTemplate adds to pods, service accounts and sidecars among it: allow or deny."
    )


class Crds(ChartModel):
    """The CustomResourceDefinition of KVCacheTier."""

    enabled: bool = Field(default=True, description="Install and upgrade the CRD with this chart.")
    keep: bool = Field(
        default=True,
        description="Keep the CRD, and with it every KVCacheTier, when the chart is uninstalled. With false, "
        "uninstalling deletes all KVCacheTiers of the cluster and what runs for them.",
    )


class EnvEntry(ChartModel):
    """A variable of a container."""

    name: str = Field(description="Its name.", min_length=1, pattern=VARIABLE_PATTERN)
    value: str | None = Field(None, description="Its value.")
    value_from: dict[str, Any] | None = Field(None, description="Where its value is, as in a pod.")


class Operator(ChartModel):
    """The operator's pod."""

    log_format: str = Field("json", description="json or plain.", pattern="^(json|plain)$")
    policy: OwnerLimits = _part(OwnerLimits)
    model_configs: str = Field(
        "none",
        description="Where to ask for the configuration of a model that the catalogue lacks: none (only what "
        "spec.model.configRef or geometry gives), or hub: Hugging Face, which the operator must then reach.",
        pattern="^(none|hub)$",
    )
    resources: dict[str, Any] = Field(
        default_factory=lambda: {key: dict(value) for key, value in RESOURCES.items()},
        description="Sized for 1,000 KVCacheTiers: 150 MiB resident, and half as much again.",
    )
    node_selector: dict[str, str] = Field(
        default_factory=lambda: {"kubernetes.io/os": "linux"}, description="Labels its node must have."
    )
    tolerations: list[dict[str, Any]] = Field(default_factory=list, description="Taints it tolerates.")
    affinity: dict[str, Any] = Field(default_factory=dict, description="Affinity of its pod.")
    priority_class_name: str = Field("", description="Priority class of its pod.")
    pod_labels: dict[str, str] = Field(default_factory=dict, description="Further labels of its pod.")
    pod_annotations: dict[str, str] = Field(default_factory=dict, description="Annotations of its pod.")
    extra_env: list[EnvEntry] = Field(
        default_factory=list,
        description="Further variables of its container, such as HTTPS_PROXY and NO_PROXY, as in a pod.",
    )
    pod_security_context: dict[str, Any] = Field(
        default_factory=lambda: dict(POD_SECURITY),
        description="Security context of its pod; null takes a field away. See also `openshift`.",
    )
    container_security_context: dict[str, Any] = Field(
        default_factory=lambda: dict(CONTAINER_SECURITY), description="Security context of its container."
    )


class ServiceAccount(ChartModel):
    """The operator's identity."""

    create: bool = Field(default=True, description="Make it; otherwise it must exist under `name`.")
    name: str = Field("", description="Its name; that of the operator when empty.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Its annotations.")


class Rbac(ChartModel):
    """The operator's rights; each rule carries its reason in the template and in docs/operations/rbac.md."""

    create: bool = Field(default=True, description="Make roles and bindings.")
    aggregate: bool = Field(
        default=True,
        description="Let Kubernetes' own roles view, edit and admin do so with KVCacheTiers as well; edit "
        "and admin only with admissionPolicy.enabled: without it a KVCacheTier can do more than they can.",
    )
    cluster_reads: bool = Field(
        default=True,
        description="May see nodes and storage classes, which belong to no namespace: a small ClusterRole "
        "also with watchNamespaces. With false, condition NodesFit is Unknown, and a missing class unnamed.",
    )
    picker_leader_election: bool = Field(
        default=True,
        description="May write Leases, to grant that to pickers with spec.router.replicas above 1. With "
        "false, such a resource gets no picker: condition RouterReady says so.",
    )
    pod_deletion_cost: bool = Field(
        default=True,
        description="May patch pods, so that with spec.autoscaling the engines that hold least go first. "
        "With false they go in Kubernetes' own order, the youngest first.",
    )
    store_password: bool = Field(
        default=True,
        description="May make Secrets, and neither read nor change them, so that a store of "
        "spec.tiers.remote.managed gets a random password. With false, name a Secret in the resource.",
    )


class AdmissionPolicy(ChartModel):
    """ValidatingAdmissionPolicy: what a KVCacheTier asks for, its author may do as well."""

    enabled: bool = Field(
        default=True,
        description="Make it, for the whole cluster. One is enough where several operators share a cluster.",
    )


class Attach(ChartModel):
    """MutatingAdmissionPolicy: gives the tier of a KVCacheTier with spec.attach to pods that others own."""

    enabled: bool = Field(
        default=True,
        description="Make it, for namespaces labelled kvtier.dev/attach: enabled, where the cluster serves "
        "the kind: Kubernetes 1.36, and 1.34 or 1.35 with its feature gate and API turned on. helm template "
        "asks no cluster and makes none, unless it is told so by "
        "--api-versions admissionregistration.k8s.io/v1/MutatingAdmissionPolicy.",
    )
    payload: Literal["init-container", "image-volume"] = Field(
        "init-container",
        description="How the connector comes into those pods: init-container copies it, image-volume mounts "
        "its image, which takes Kubernetes 1.35 and containerd 2.1 or CRI-O 1.31 on every node.",
    )


class Monitor(ChartModel):
    """ServiceMonitor of the operator (needs the Prometheus operator's CRDs)."""

    enabled: bool = Field(default=False, description="Make it.")
    interval: str = Field("30s", description="How often to scrape.", pattern=r"^[0-9]+(ms|s|m|h)$")
    labels: dict[str, str] = Field(
        default_factory=dict, description="Further labels, by which a Prometheus selects it."
    )


class Alerts(ChartModel):
    """PrometheusRule with the operator's own alerts (needs the Prometheus operator's CRDs)."""

    enabled: bool = Field(default=False, description="Make it.")
    labels: dict[str, str] = Field(
        default_factory=dict, description="Further labels, by which a Prometheus selects it."
    )


class OwnDashboard(ChartModel):
    """ConfigMap with a Grafana dashboard of the operator, for Grafana's sidecar."""

    enabled: bool = Field(
        default=False, description="Make it. One is enough where several operators share a cluster."
    )
    labels: dict[str, str] = Field(
        default_factory=lambda: dict(SIDECAR_LABEL), description="Labels, by which the sidecar finds it."
    )
    annotations: dict[str, str] = Field(
        default_factory=dict, description="Its annotations, such as the folder: {grafana_folder: kvtier}."
    )


class DisruptionBudget(ChartModel):
    """PodDisruptionBudget of the operator: says that its one pod may be evicted."""

    enabled: bool = Field(default=False, description="Make it.")


class NetworkPolicy(ChartModel):
    """NetworkPolicy of the operator: in, metrics; out, the API server and DNS."""

    enabled: bool = Field(default=False, description="Make it.")


class Tier(ChartModel):
    """One KVCacheTier."""

    name: str = Field(description="Its name.", min_length=1, max_length=48)
    namespace: str = Field("", description="Its namespace; the release's when empty.", max_length=63)
    labels: dict[str, str] = Field(default_factory=dict, description="Its labels.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Its annotations.")
    spec: dict[str, Any] = Field(description="Its spec: see docs/reference/api.md.")


class Values(ChartModel):
    """All values of the chart."""

    name_override: _ObjectName = Field(
        "", description="Name of the operator's objects; RELEASE-operator when empty."
    )
    fullname_override: _ObjectName = Field(
        "", description="The same, by the name that most charts have it by; it goes first."
    )
    watch_namespaces: list[_Namespace] = Field(
        default_factory=list,
        json_schema_extra={"uniqueItems": True},
        description="Namespaces to serve, which must exist, with a Role in each. Empty: all of them.",
    )
    global_: Global = _part(Global, alias="global")
    openshift: str = Field(
        "auto",
        description="Leave the operator's user to the platform, as the SCC restricted-v2 demands: no "
        "runAsUser, runAsGroup, fsGroup. auto: where the cluster has security.openshift.io; force; disabled.",
        pattern="^(auto|force|disabled)$",
    )
    crds: Crds = _part(Crds)
    image: Image = _part(Image)
    images: Images = _part(Images)
    operator: Operator = _part(Operator)
    service_account: ServiceAccount = _part(ServiceAccount)
    rbac: Rbac = _part(Rbac)
    admission_policy: AdmissionPolicy = _part(AdmissionPolicy)
    attach: Attach = _part(Attach)
    service_monitor: Monitor = _part(Monitor)
    prometheus_rule: Alerts = _part(Alerts)
    dashboard: OwnDashboard = _part(OwnDashboard)
    pod_disruption_budget: DisruptionBudget = _part(DisruptionBudget)
    network_policy: NetworkPolicy = _part(NetworkPolicy)
    picker: dict[str, Any] = Field(
        default_factory=dict,
        description="Defaults of spec.router for `tiers`, such as {flavor: gaie, failureMode: FailClose}.",
    )
    tiers: list[Tier] = Field(
        default_factory=list,
        description="KVCacheTiers to make with the chart. Where the cluster lacks the CRD, the first install "
        "leaves them out (Helm cannot make a kind and its first object at once): run helm upgrade once more.",
    )
    extra_objects: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Further objects to make with the release; expressions of Helm in them are worked out.",
    )
