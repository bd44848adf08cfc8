"""Whether the resource asks for what the cluster's owner lets resources ask for."""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.api.spec.model import ModelSpec
from kvtier_operator.planning.base.owner_policy import ALLOW, Limit, limit_text, permits
from kvtier_operator.planning.checks.check import CheckInput, check
from kvtier_operator.planning.images import repository_of
from kvtier_operator.planning.objects.engine.containers import runs_as_root, wants_ipc_lock
from kvtier_operator.planning.pod.budget import host_folders, written_host_folders
from kvtier_operator.planning.pod_template.template import ENGINE, images, pod_templates, root_fields
from kvtier_operator.planning.verdict import CheckResult
from kvtier_operator.planning.weights.pod_weights import SourceKind, model_source


def _denial(limit: Limit, denied: Sequence[tuple[str, str]], none: str, some: str, instead: str) -> str:
    """What a limit denies, all of it in one line.

    Args:
        limit: Not `allow`.
        denied: What is asked for and is not allowed, at least one: field and value.
        none: Where nothing is allowed, after "the cluster's owner lets", such as `no resource name an image`.
        some: Where some are: what the list has, such as `resources name images of`.
        instead: What to do that is allowed whatever the limit.
    """
    (_, first), *others = denied
    if isinstance(limit, str) or not limit:
        also = f" ({', '.join(place for place, _ in others)} as well)" if others else ""
        return f"the cluster's owner lets {none}{also}: {instead}"
    also = "".join(f", nor is {value} at {place}" for place, value in others)
    some = f"{some}: {limit_text(limit)}; {first} is none of them{also}: take one, or {instead}"
    return f"the cluster's owner lets {some}"


@check("spec.tiers.disk.volume.hostPath")
def allowed_host_path(parts: CheckInput) -> CheckResult:
    """With a list, these folders alone.

    Not what is below them: an engine is root in its folder and could put a link to any other there, which the
    container runtime would follow for the next one.
    """
    limit = parts.policy.host_path
    denied = [(field, path) for field, path in host_folders(parts.spec) if not _permits_path(limit, path)]
    if denied:
        return allowed_host_path.reject(
            "HostPathDenied",
            _denial(
                limit,
                denied,
                "no resource have a folder of the node",
                "resources have these folders of the node",
                "take another kind of volume",
            ),
            field=denied[0][0],
        )
    return allowed_host_path.passed("no folder of the node is asked for that the cluster's owner denies")


def _permits_path(limit: Limit, path: str) -> bool:
    if isinstance(limit, str):
        return limit == ALLOW
    return path.rstrip("/") in {folder.rstrip("/") for folder in limit}


_MEMLOCK_FIELD: Final = "spec.tiers.cpu.memlock.policy"


@check("spec.tiers.disk.volume.hostPath")
def allowed_root(parts: CheckInput) -> CheckResult:
    """A folder of the node, IPC_LOCK or a pod template makes them so."""
    templates = root_fields(parts.spec)
    if parts.policy.root_engines == ALLOW or not (runs_as_root(parts.spec) or templates):
        return allowed_root.passed("no engine is root that the cluster's owner denies")
    makes_root = "the cluster's owner lets no engine be root, which this makes it: "
    faults = [(_MEMLOCK_FIELD, f"{makes_root}write Prefer")] if wants_ipc_lock(parts.spec) else []
    faults += [
        (field, f"{makes_root}take another kind of volume") for field, _ in written_host_folders(parts.spec)
    ]
    faults += [(field, f"{makes_root}have it say runAsNonRoot: true and another user") for field in templates]
    return allowed_root.reject_each("RootDenied", faults)


@check("spec.tiers.cpu.memlock.policy")
def allowed_ipc_lock(parts: CheckInput) -> CheckResult:
    """Locked memory is taken from everybody on the node."""
    if parts.policy.ipc_lock == ALLOW or not wants_ipc_lock(parts.spec):
        return allowed_ipc_lock.passed("no capability is asked for that the cluster's owner denies")
    return allowed_ipc_lock.reject(
        "IpcLockDenied", "the cluster's owner lets no engine have IPC_LOCK, which Require takes: write Prefer"
    )


_OWN_IMAGE: Final = "leave it out for the installation's own"
_ADDED: Final = "leave it out of the template"
_MODEL: Final = "have the model on a claim: pvc:// in spec.model.source"


@check("spec.engine.image")
def allowed_images(parts: CheckInput) -> CheckResult:
    """Those that the resource does not name are the installation's own choice."""
    limit, models = parts.policy.images, _of_the_model(parts.spec.model)
    standalone = parts.spec.router.standalone
    named = {
        "spec.engine.image": parts.spec.engine.image,
        "spec.router.image": parts.spec.router.image,
        "spec.router.gateway.standalone.image": standalone.image if standalone else None,
        **models,
        **(of_templates := images(parts.spec)),
    }
    denied = [(field, image) for field, image in named.items() if image and not _permits_image(limit, image)]
    if denied:
        first = denied[0][0]
        instead = _MODEL if first in models else _ADDED if first in of_templates else _OWN_IMAGE
        return allowed_images.reject(
            "ImageDenied",
            _denial(limit, denied, "no resource name an image", "resources name images of", instead),
            field=denied[0][0],
        )
    return allowed_images.passed("no image is named that the cluster's owner denies")


def _of_the_model(model: ModelSpec) -> dict[str, str | None]:
    source = model_source(model)
    is_image = source is not None and source.kind is SourceKind.IMAGE
    return {
        "spec.model.source": source.place if source and is_image else None,
        "spec.model.fetcher.image": model.fetcher.image if model.fetcher else None,
    }


def _permits_image(limit: Limit, image: str) -> bool:
    """An entry is a whole image, a repository or, where it ends in `/`, the start of one."""
    if isinstance(limit, str):
        return limit == ALLOW
    name = repository_of(image)
    return any(entry in (image, name) or (entry[-1] == "/" and name.startswith(entry)) for entry in limit)


@check(ENGINE)
def allowed_templates(parts: CheckInput) -> CheckResult:
    """A template brings what no other limit looks at: service accounts, Secrets as volumes, sidecars."""
    templates = pod_templates(parts.spec)
    if parts.policy.pod_templates == ALLOW or not templates:
        return allowed_templates.passed("no pod template is asked for that the cluster's owner denies")
    denied = "the cluster's owner lets no resource add to its pods: remove it"
    return allowed_templates.reject_each("PodTemplateDenied", [(path, denied) for path in templates])


@check("spec.router.gateway.hostnames")
def allowed_host_names(parts: CheckInput) -> CheckResult:
    """A route without host names has all of its Gateway's, so that with any limit it must name some."""
    limit, gateway = parts.policy.host_names, parts.spec.router.gateway
    if gateway is None or gateway.parent_ref is None or limit == ALLOW:
        return allowed_host_names.passed("no host name is asked for that the cluster's owner denies")
    denied = [
        (f"{allowed_host_names.field}[{index}]", name)
        for index, name in enumerate(gateway.hostnames)
        if not _permits_name(limit, name)
    ]
    if not gateway.hostnames:
        denied = [(allowed_host_names.field, "a route without any, which has all of the Gateway's,")]
    if not denied:
        return allowed_host_names.passed("the cluster's owner allows these host names")
    return allowed_host_names.reject(
        "HostNameDenied",
        _denial(limit, denied, "no route be made", "routes have these host names", "leave the gateway out"),
        field=denied[0][0],
    )


def _permits_name(limit: Limit, name: str) -> bool:
    """`*.example.com` allows itself and every name below it."""
    return not isinstance(limit, str) and any(
        name == entry or (entry.startswith("*.") and name.endswith(entry[1:])) for entry in limit
    )


@check("spec.router.gateway.parentRef.namespace")
def allowed_gateways(parts: CheckInput) -> CheckResult:
    """A Gateway of the resource's own namespace is always allowed."""
    limit, gateway = parts.policy.foreign_gateways, parts.spec.router.gateway
    own = parts.resource.metadata.namespace
    parent = gateway.parent_ref if gateway else None
    namespace = (parent.namespace if parent else None) or own
    if parent is None or namespace == own or permits(limit, f"{namespace}/{parent.name}"):
        return allowed_gateways.passed("no Gateway is asked for that the cluster's owner denies")
    asked = (allowed_gateways.field, f"{namespace}/{parent.name}")
    return allowed_gateways.reject(
        "GatewayDenied",
        _denial(
            limit,
            [asked],
            "no route attach to a Gateway of another namespace",
            "routes attach to these Gateways of other namespaces",
            f"attach to one of namespace {own}",
        ),
        field=allowed_gateways.field,
    )
