"""Which resources a command plans, their plans, and what refuses or hides them."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import click

from kvtier_common.terminal.say import complain
from kvtier_operator.api.edits import Edit, apply_edits
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import Spec
from kvtier_operator.cli.inputs import options
from kvtier_operator.cli.inputs.load import Loaded, load, naming
from kvtier_operator.cli.inputs.observe import Facts, observe
from kvtier_operator.cli.main import EXIT_REJECTED
from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.base.remote_store import secret_mounts
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.pod_template.template import pod_templates
from kvtier_operator.planning.verdict import CheckResult, Outcome, most_important_first

if TYPE_CHECKING:
    from kvtier_operator.planning.attach.plan import AttachPlan
    from kvtier_operator.planning.node_share import NodeShare, NodeSize
    from kvtier_operator.planning.router.route_order import Hidden


def load_by_name_or_paths(  # noqa: PLR0913 - as many options
    name: str | None,
    paths: Sequence[str],
    *,
    namespace: str | None,
    cluster: options.ClusterChoice,
    model_config: str | None,
    edits: Sequence[Edit] = (),
) -> Loaded:
    """The resource of that name, else those of the files, with some fields set.

    A UsageError where both are given, or neither.
    """
    if (name is None) != bool(paths):
        raise click.UsageError("give either -f FILE or the NAME of a KVCacheTier of a cluster")
    if name is not None:
        import asyncio  # noqa: PLC0415 - files need none of it

        return asyncio.run(_load_named(name, namespace, cluster, edits, with_config=model_config is None))
    if namespace is not None:
        raise click.UsageError("--namespace is of a NAME; a file says its own")
    return load(paths, edits)


async def _load_named(
    name: str,
    namespace: str | None,
    cluster: options.ClusterChoice,
    edits: Sequence[Edit],
    *,
    with_config: bool,
) -> Loaded:
    async with options.open_cluster(cluster, namespace) as (reader, place):
        source = f"{place}/{name}"
        resource = parse_resource(apply_edits(await reader.document(place, name), edits, source), source)
        config_maps: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
        model = resource.spec.served_model
        if with_config and model and (ref := model.config_ref) is not None:
            config_maps[place, ref.name] = "the cluster", await reader.config_map(place, ref.name)
    return Loaded(((source, resource),), config_maps)


def plans_of(
    loaded: Loaded, *, policy: OwnerPolicy | None = None, **facts: Unpack[Facts]
) -> list[tuple[str, Plan]]:
    """The Plan of each resource, with its file, and with what `observe` finds by these facts."""
    plans = []
    for source, resource in loaded.resources:
        with naming(source):
            observed = observe(resource, config_maps=loaded.config_maps, **facts)
            plans.append((source, make_plan(resource, replace(observed, policy=policy or OwnerPolicy()))))
    return plans


def attached_plans(loaded: Loaded, **facts: Unpack[Facts]) -> "list[tuple[str, AttachPlan]]":
    """The same of resources with spec.attach: what their pods are given."""
    from kvtier_operator.planning.attach.plan import plan_attach  # noqa: PLC0415 - few resources have it

    plans = []
    for source, resource in loaded.resources:
        with naming(source):
            plans.append(
                (source, plan_attach(resource, observe(resource, config_maps=loaded.config_maps, **facts)))
            )
    return plans


def node_shares(
    loaded: Loaded, node: "NodeSize", *, takes_largest: bool, **facts: Unpack[Facts]
) -> tuple[Loaded, "list[NodeShare]"]:
    """What one node's engines may have of each resource.

    Args:
        loaded: The resources.
        node: The node.
        takes_largest: Whether the resources get the largest CPU tier, in place of what they have.
        facts: As of `plans_of`.
    """
    from kvtier_operator.planning.node_share import share_node, with_cpu_tier  # noqa: PLC0415 - few ask for it

    resources, shares = [], []
    for source, resource in loaded.resources:
        with naming(source):
            observed = observe(resource, config_maps=loaded.config_maps, **facts)
            share = share_node(resource, observed, node)
            if takes_largest:
                share = share.at_largest()
                resource = with_cpu_tier(resource, share.largest_bytes)  # noqa: PLW2901 - the same, sized
        resources.append((source, resource))
        shares.append(share)
    return replace(loaded, resources=tuple(resources)), shares


def refusals(source: str, plan: Plan) -> tuple[str, ...]:
    """One line for each check that refuses the plan: where, which field, what to do."""
    return tuple(_line(source, check) for check in plan.checks if check.outcome is Outcome.REJECT)


def remarks(source: str, plan: Plan) -> tuple[str, ...]:
    """The same, and one line for each warning."""
    return tuple(
        _line(source, check)
        for check in most_important_first(plan.checks)
        if check.outcome is not Outcome.PASS
    )


def without_pods(source: str, spec: Spec) -> Iterator[str]:
    """A line for each thing that only pods have, for commands that make none."""
    if templates := ", ".join(pod_templates(spec)):
        yield f"{source}: {templates}: for pods alone, and this makes none: left out"
    for mount in secret_mounts(spec.tiers.remote):
        secret = mount.source["secret"]["secretName"]
        yield f"{source}: {mount.mount_path} is Secret {secret} of a cluster: put its files there"


def _line(source: str, check: CheckResult) -> str:
    return f"{source}: {check.field}: {check.message} ({check.reason})"


def accepted_plans(
    paths: Sequence[str], *, model_config: str | None, hub: bool, images: ImageSource
) -> list[tuple[str, Plan]]:
    """As `accept`, of the resources of some files."""
    return accept(load(paths), model_config=model_config, hub=hub, images=images)


def accept(loaded: Loaded, **facts: Unpack[Facts]) -> list[tuple[str, Plan]]:
    """The Plan of each resource, with its file; ends the command where a check refuses one, and says why."""
    plans = plans_of(loaded, **facts)
    if refused := [line for source, plan in plans for line in refusals(source, plan)]:
        complain("\n".join(refused))
        sys.exit(EXIT_REJECTED)
    return plans


@dataclass(frozen=True, slots=True)
class Collision:
    """Two routes that ask for the same requests."""

    # the one that gets none of them, `namespace/name`; which of the two only the cluster knows, by their age
    route: str
    sources: tuple[str, str]  # the files of both, the other one's first
    hidden: "Hidden"  # what it is hidden by, and whether wholly

    def __str__(self) -> str:
        """One line for whoever wrote the files."""
        by, files = self.hidden, " and ".join(dict.fromkeys(self.sources))
        return (
            f"{files}: RouteHidden spec.router.gateway: {by.by.route} and {self.route} both ask Gateway "
            f"{by.gateway} for {by.requests}, and only the one that is made first gets them: give them "
            "different spec.router.gateway.hostnames, or one of them spec.router.gateway.ownPath"
        )


def collisions(plans: Iterable[tuple[str, Plan]]) -> tuple[Collision, ...]:
    """The routes that others hide, of plans that each come with the file of their resource."""
    from kvtier_operator.planning.objects.gateway.http_route import http_routes  # noqa: PLC0415 - few plans have routes
    from kvtier_operator.planning.router.route_order import RouteOrder, claim_of  # noqa: PLC0415 - as above

    claims, files = [], {}
    for source, plan in plans:
        for route in http_routes(plan)[:1]:
            if claim := claim_of(route, ours=True):
                claims.append(claim)
                files[claim.route] = source
    order, names = RouteOrder(), {claim.route: claim for claim in claims}
    order.put(names, names.keys())
    return tuple(
        Collision(claim.route, (files[by.by.route], files[claim.route]), by)
        for claim in sorted(claims, key=lambda claim: claim.turn)
        if (by := order.find_hidden(claim.route))
    )
