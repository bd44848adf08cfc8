"""The chart's values: the one source of values.yaml, values.schema.json and the README's table."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from kvtier_operator.api.formats import LABEL
from kvtier_operator.api.spec.pod import VARIABLE_PATTERN
from kvtier_operator.api.spec.tiers import Backend
from kvtier_operator.install.deployment import CONTAINER_SECURITY, POD_SECURITY, RESOURCES
from kvtier_operator.lease_seconds import DEFAULT_LEASE_S, LEAST_LEASE_S, MOST_LEASE_S
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

    name: _SecretName = Field(description="Name of the Secret.")


class Global(ChartModel):
    """Values shared with other charts; only these are read."""

    model_config = ConfigDict(extra="allow")

    image_registry: str = Field(
        "",
        description="Registry to pull every image from, those of engines and pickers included: "
        "HOST[:PORT][/PATH]. It replaces the image's own: ghcr.io/llm-d/x:1 becomes HOST/llm-d/x:1. Changing "
        "it restarts engines.",
        pattern=f"^({REGISTRY_PATTERN})?$",
    )
    image_pull_secrets: list[_SecretName | PullSecret] = Field(
        default_factory=list,
        description="Secrets to pull all images with: names, or [{name: ...}] as in a pod. Each must exist "
        "in the operator's namespace and in that of every KVCacheTier. Changing them restarts engines.",
    )


class Image(ChartModel):
    """The operator's image."""

    repository: str = Field(
        KVTIER_REPOSITORY,
        description="Image without its tag; init containers of engines use it too. If it names a host, "
        "global.imageRegistry does not apply to it.",
        pattern=f"^{REPOSITORY_PATTERN}$",
    )
    tag: str = Field("", description="Tag; the chart's appVersion when empty.", pattern=f"^({TAG_PATTERN})?$")
    digest: str = Field(
        "",
        description="Digest such as sha256:...; wins over the tag. It is the operator's pod's alone: for "
        "engines' pods see images.doctor.",
        pattern="^(sha256:[0-9a-f]{64})?$",
    )
    pull_policy: str = Field(
        "IfNotPresent", description="Image pull policy.", pattern="^(Always|IfNotPresent|Never)$"
    )
    pull_secrets: list[dict[str, str]] = Field(
        default_factory=list,
        description="Secrets to pull this image with, as in a pod: [{name: ...}]. For all images: "
        "global.imagePullSecrets.",
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
    return _reference(
        f"Engines with {what}{f' on device {next(iter(devices))}' if len(devices) == 1 else ''}."
    )


class Images(ChartModel):
    """Images to use where a KVCacheTier names none, as full references: registry.example/engine@sha256:..."""

    doctor: str = _reference(
        f"The doctor, an init container of engines; by default kvtier's image of release {DOCTOR_VERSION}. "
        "Changing it restarts engines."
    )
    connector: str = _reference(
        "The connector for engines with backend "
        f"{', '.join(backends_that(lambda traits: traits.in_payload))}; by default kvtier's image of release "
        f"{CONNECTOR_VERSION}. Changing it restarts them."
    )
    vllm: str = _engines(ImageName.VLLM)
    vllm_cpu: str = _engines(ImageName.VLLM_CPU)
    lmcache: str = _engines(ImageName.LMCACHE)
    picker_llm_d: str = _reference("Pickers of flavor llm-d, where spec.router.version is not set.")
    picker_gaie: str = _reference("Pickers of flavor gaie, where spec.router.version is not set.")
    picker_builtin: str = _reference("Pickers of flavor builtin, where spec.router.version is not set.")
    envoy: str = _reference("Envoy for KVCacheTiers with gateway provider standalone.")
    valkey: str = _reference("Valkey for KVCacheTiers with spec.tiers.remote.managed.")


def _or_list(limit: str) -> Any:  # noqa: ANN401 - pydantic's own type
    """JSON Schema asks for the pattern of texts alone, so that Helm names the one wrong entry."""
    items = {"type": "string", "pattern": ENTRIES[limit].pattern}
    return WithJsonSchema({"type": ["string", "array"], "pattern": f"^({ALLOW}|{DENY})$", "items": items})


def _limit(what: str) -> Any:  # noqa: ANN401 - pydantic's own signature
    return Field("allow", description=what)


class OwnerLimits(ChartModel):
    """What KVCacheTiers may ask for: allow, deny, or a list of what is allowed."""

    host_path: Annotated[str | list[str], _or_list("host_path")] = _limit(
        "Folders of the node; a folder does not include those below it: [/mnt/nvme0]."
    )
    root_engines: _Switch = _limit(
        "Engines that run as root, as with hostPath, memlock Require or a podTemplate: allow or deny."
    )
    ipc_lock: _Switch = _limit("The capability IPC_LOCK, which memlock Require needs: allow or deny.")
    images: Annotated[str | list[str], _or_list("images")] = _limit(
        "Images that resources may name: repositories, or prefixes that end in /: [registry.example/team/]."
    )
    host_names: Annotated[str | list[str], _or_list("host_names")] = _limit(
        "Host names that routes may have: [llm.example.com, '*.team.example.com']; deny: no routes."
    )
    foreign_gateways: Annotated[str | list[str], _or_list("foreign_gateways")] = _limit(
        "Gateways in other namespaces: [NAMESPACE] or [NAMESPACE/NAME]."
    )
    pod_templates: _Switch = _limit(
        "Additions to pods by a podTemplate, service accounts and sidecars included: allow or deny."
    )


class Crds(ChartModel):
    """The CustomResourceDefinition of KVCacheTier."""

    enabled: bool = Field(default=True, description="Install and upgrade the CRD with this chart.")
    keep: bool = Field(
        default=True,
        description="Keep the CRD, and with it every KVCacheTier, when the chart is uninstalled. With false, "
        "uninstalling deletes all KVCacheTiers in the cluster and everything that runs for them.",
    )


class EnvEntry(ChartModel):
    """An environment variable of a container."""

    name: str = Field(description="Name of the variable.", min_length=1, pattern=VARIABLE_PATTERN)
    value: str | None = Field(None, description="Value, as text.")
    value_from: dict[str, Any] | None = Field(None, description="Where to take the value from, as in a pod.")


class Operator(ChartModel):
    """The operator's pods."""

    replicas: int = Field(
        1, description="Pods: one reconciles, the others stand by until its Lease is free.", ge=1, le=16
    )
    lease_seconds: int = Field(
        DEFAULT_LEASE_S,
        description="How long a standby waits for the Lease of a pod that died; one that is stopped gives it "
        "up at once.",
        ge=LEAST_LEASE_S,
        le=MOST_LEASE_S,
    )
    strategy: dict[str, Any] = Field(
        default_factory=dict,
        description="How a new pod takes the place of an old one, as in a Deployment. Empty: "
        "RollingUpdate, the new one first.",
    )
    log_format: str = Field("json", description="Format of its log: json or plain.", pattern="^(json|plain)$")
    log_level: str = Field(
        "info",
        description="Least severe messages of its log: debug, info, warning or error.",
        pattern="^(debug|info|warning|error)$",
    )
    policy: OwnerLimits = _part(OwnerLimits)
    model_configs: str = Field(
        "none",
        description="Where to look up a model that the catalogue does not have. none: nowhere, the resource "
        "needs spec.model.configRef or geometry. hub: at Hugging Face, which the operator must then reach.",
        pattern="^(none|hub)$",
    )
    resources: dict[str, Any] = Field(
        default_factory=lambda: {key: dict(value) for key, value in RESOURCES.items()},
        description="Resources of its pod, sized for 1,000 KVCacheTiers: 150 MiB resident, and a margin.",
    )
    node_selector: dict[str, str] = Field(
        default_factory=lambda: {"kubernetes.io/os": "linux"}, description="Labels that its node must have."
    )
    tolerations: list[dict[str, Any]] = Field(default_factory=list, description="Tolerations of its pod.")
    affinity: dict[str, Any] = Field(default_factory=dict, description="Affinity of its pod.")
    topology_spread_constraints: list[dict[str, Any]] = Field(
        default_factory=list, description="Topology spread constraints of its pod, labelSelector included."
    )
    priority_class_name: str = Field("", description="Priority class of its pod.")
    pod_labels: dict[str, str] = Field(default_factory=dict, description="Additional labels of its pod.")
    pod_annotations: dict[str, str] = Field(default_factory=dict, description="Annotations of its pod.")
    extra_env: list[EnvEntry] = Field(
        default_factory=list,
        description="Additional environment variables, as in a pod, such as HTTPS_PROXY and NO_PROXY.",
    )
    volumes: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Additional volumes of its pod, such as a ConfigMap with the certificate authority of a "
        "proxy or mirror: see `volumeMounts`.",
    )
    volume_mounts: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Where its container mounts them. Certificates for modelConfigs hub are read from the "
        "file that extraEnv names as SSL_CERT_FILE, in place of the image's own.",
    )
    pod_security_context: dict[str, Any] = Field(
        default_factory=lambda: dict(POD_SECURITY),
        description="Security context of its pod; null removes a field. See also `openshift`.",
    )
    container_security_context: dict[str, Any] = Field(
        default_factory=lambda: dict(CONTAINER_SECURITY), description="Security context of its container."
    )


class ServiceAccount(ChartModel):
    """The operator's service account."""

    create: bool = Field(
        default=True, description="Create the service account. With false, `name` must exist."
    )
    name: str = Field("", description="Name of the service account; the operator's name when empty.")
    annotations: dict[str, str] = Field(
        default_factory=dict, description="Annotations of the service account."
    )


class Rbac(ChartModel):
    """The operator's rights; each rule carries its reason in the template and in docs/operations/rbac.md."""

    create: bool = Field(default=True, description="Create roles and bindings.")
    aggregate: bool = Field(
        default=True,
        description="Add KVCacheTiers to Kubernetes' own roles view, edit and admin. To edit and admin only "
        "with admissionPolicy.enabled, since without it a KVCacheTier can do more than its author may.",
    )
    cluster_reads: bool = Field(
        default=True,
        description="Let the operator see nodes and storage classes, which belong to no namespace: a small "
        "ClusterRole, even with watchNamespaces. With false, condition NodesFit is Unknown, and a missing "
        "storage class is not reported.",
    )
    picker_leader_election: bool = Field(
        default=True,
        description="Let the operator write Leases, so that it can grant this to pickers with "
        "spec.router.replicas above 1. With false, such a resource gets no picker, as RouterReady says.",
    )
    pod_deletion_cost: bool = Field(
        default=True,
        description="Let the operator patch pods, so that spec.autoscaling removes the engines that hold the "
        "least first. With false, Kubernetes removes the youngest first.",
    )
    store_password: bool = Field(
        default=True,
        description="Let the operator create Secrets, but neither read nor change them, so that a store with "
        "spec.tiers.remote.managed gets a random password. With false, the resource has to name a Secret.",
    )


class AdmissionPolicy(ChartModel):
    """ValidatingAdmissionPolicy: a KVCacheTier may ask only for what its author may do."""

    enabled: bool = Field(
        default=True,
        description="Create the policy, for the whole cluster: one is enough for several operators.",
    )


class Attach(ChartModel):
    """MutatingAdmissionPolicy: gives pods that others own the tier of a KVCacheTier with spec.attach."""

    enabled: bool = Field(
        default=True,
        description="Create the policy, for namespaces labelled kvtier.dev/attach: enabled, if the cluster "
        "has the kind: Kubernetes 1.36, and 1.34 or 1.35 with its feature gate and API turned on. helm "
        "template asks no cluster and leaves it out without "
        "--api-versions admissionregistration.k8s.io/v1/MutatingAdmissionPolicy.",
    )
    payload: Literal["init-container", "image-volume"] = Field(
        "init-container",
        description="How the connector gets into those pods. init-container: copied; image-volume: mounted "
        "from its image, which needs Kubernetes 1.35 and containerd 2.1 or CRI-O 1.31 on every node.",
    )


def _monitoring_namespace() -> Any:  # noqa: ANN401 - pydantic's own type
    return Field(
        "",
        description="Namespace to create it in, which must exist; the release's when empty.",
        pattern=f"^({LABEL})?$",
        max_length=63,
    )


def _monitoring_labels() -> Any:  # noqa: ANN401 - as above
    return Field(
        default_factory=dict, description="Additional labels, for a Prometheus that selects by label."
    )


class Monitor(ChartModel):
    """ServiceMonitor of the operator (needs the Prometheus operator's CRDs)."""

    enabled: bool = Field(default=False, description="Create a ServiceMonitor.")
    namespace: str = _monitoring_namespace()
    interval: str = Field("30s", description="How often to scrape.", pattern=r"^[0-9]+(ms|s|m|h)$")
    scrape_timeout: str = Field(
        "",
        description="How long a scrape may take, at most the interval; Prometheus' own when empty.",
        pattern=r"^([0-9]+(ms|s|m|h))?$",
    )
    labels: dict[str, str] = _monitoring_labels()
    relabelings: list[dict[str, Any]] = Field(
        default_factory=list, description="Relabelling of the target, as in a ServiceMonitor's endpoint."
    )
    metric_relabelings: list[dict[str, Any]] = Field(
        default_factory=list, description="Relabelling of its metrics, as in a ServiceMonitor's endpoint."
    )


class Alerts(ChartModel):
    """PrometheusRule with the operator's own alerts (needs the Prometheus operator's CRDs)."""

    enabled: bool = Field(default=False, description="Create a PrometheusRule.")
    namespace: str = _monitoring_namespace()
    labels: dict[str, str] = _monitoring_labels()


class OwnDashboard(ChartModel):
    """ConfigMap with a Grafana dashboard of the operator, for Grafana's sidecar."""

    enabled: bool = Field(
        default=False, description="Create the dashboard; one is enough for several operators in a cluster."
    )
    labels: dict[str, str] = Field(
        default_factory=lambda: dict(SIDECAR_LABEL), description="Labels by which Grafana's sidecar finds it."
    )
    annotations: dict[str, str] = Field(
        default_factory=dict, description="Annotations, such as the folder: {grafana_folder: kvtier}."
    )


class DisruptionBudget(ChartModel):
    """PodDisruptionBudget of the operator: one pod at a time may be evicted, the only one too."""

    enabled: bool = Field(default=False, description="Create a PodDisruptionBudget.")


class NetworkPolicy(ChartModel):
    """NetworkPolicy of the operator: ingress for metrics, egress to the API server and DNS."""

    enabled: bool = Field(default=False, description="Create a NetworkPolicy.")


class Tier(ChartModel):
    """One KVCacheTier."""

    name: str = Field(description="Name of the KVCacheTier.", min_length=1, max_length=48)
    namespace: str = Field("", description="Namespace; the release's when empty.", max_length=63)
    labels: dict[str, str] = Field(default_factory=dict, description="Labels.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Annotations.")
    spec: dict[str, Any] = Field(description="Spec: see docs/reference/api.md.")


class Values(ChartModel):
    """All values of the chart."""

    name_override: _ObjectName = Field(
        "", description="Name of the operator's objects; RELEASE-operator when empty."
    )
    fullname_override: _ObjectName = Field(
        "", description="As nameOverride, under the name that most charts use; it wins if both are set."
    )
    watch_namespaces: list[_Namespace] = Field(
        default_factory=list,
        json_schema_extra={"uniqueItems": True},
        description="Namespaces to serve, with a Role in each; they must exist. Empty: all namespaces.",
    )
    global_: Global = _part(Global, alias="global")
    common_labels: dict[str, str] = Field(
        default_factory=dict,
        description="Labels of every object of the chart, pods and KVCacheTiers in `tiers` included; never "
        "part of a selector. extraObjects have their own.",
    )
    common_annotations: dict[str, str] = Field(
        default_factory=dict,
        description="Annotations of every object of the chart, KVCacheTiers in `tiers` included; not of its "
        "pods: operator.podAnnotations.",
    )
    openshift: str = Field(
        "auto",
        description="Leave out runAsUser, runAsGroup and fsGroup, which OpenShift's SCC restricted-v2 sets "
        "itself. auto: if the cluster has security.openshift.io; force: always; disabled: never.",
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
        description="Defaults for spec.router of `tiers`, such as {flavor: gaie, failureMode: FailClose}.",
    )
    tiers: list[Tier] = Field(
        default_factory=list,
        description="KVCacheTiers to install with the chart. On a cluster without the CRD the first install "
        "leaves them out, as Helm cannot create a kind and its first object at once: run helm upgrade then.",
    )
    extra_objects: list[dict[str, Any]] = Field(
        default_factory=list,
        description="Additional objects to install with the release; Helm templates in them are evaluated.",
    )
