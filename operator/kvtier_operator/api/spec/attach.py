"""`spec.attach`: pods that others own, which get the tiers when they are made, and what may stand beside it."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from pydantic import Field

from kvtier_operator.api.base import ApiModel, Rule
from kvtier_operator.api.formats import DnsLabel, Labels
from kvtier_operator.api.former import ALL
from kvtier_operator.api.spec.engine import EngineSpec
from kvtier_operator.api.spec.router import RouterSpec
from kvtier_operator.api.spec.tiers import Ability, backends_with, one_of
from kvtier_operator.api.spec.tiers.cpu import Policy
from kvtier_operator.api.spec.tiers.disk import DiskTierSpec
from kvtier_operator.api.spec.tiers.remote import RemoteEngine, RemoteTierSpec

MOST_LABELS: Final = 16
MOST_RIVALS: Final = 16
"""KVCacheTiers that may select the same pods as one: their selectors stand in its status, and the policy holds
each against every pod."""


class AttachedPodSelector(ApiModel):
    """Pods of the resource's namespace, by labels that they have already."""

    match_labels: Labels = Field(
        description="Labels that a pod has, all of them. Take those it has already: adding one to a KServe service or a chart changes selectors that cannot change.",
        min_length=1,
        max_length=MOST_LABELS,
    )


class AttachSpec(ApiModel):
    """Pods that others own."""

    pod_selector: AttachedPodSelector = Field(description="Which pods of this namespace.")
    container: DnsLabel | None = Field(
        None,
        description="Their container that vLLM runs in. Empty: their only container, or else the only one whose limits have a GPU (nvidia.com/gpu or amd.com/gpu); a pod where neither tells is left alone.",
    )


def _as_by_default(path: str, default: Mapping[str, Any]) -> list[str]:
    """CEL: what holds where a part of the spec says nothing; the API server writes its defaults into it."""
    terms = []
    for name, value in default.items():
        field = f"{path}.{name}"
        if value is None:
            terms.append(f"!has({field})")
        elif value in ([], {}):
            terms.append(f"(!has({field}) || size({field}) == 0)")
        elif isinstance(value, Mapping):
            terms.append(f"(!has({field}) || ({' && '.join(_as_by_default(field, value))}))")
        else:
            is_it = [value, *(word.was for word in ALL if (word.field, word.now) == (name, value))]
            terms.append(f"(!has({field}) || {' || '.join(f'{field} == {_literal(one)}' for one in is_it)})")
    return terms


def _literal(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f"'{value}'"
        case _:
            return str(value)


def _left_out(part: type[ApiModel], field: str, message: str) -> Rule:
    """The rule that a part of the spec with defaults of its own is left out beside attach."""
    default = part()
    terms = _as_by_default(f"self.{field}", default.model_dump(mode="json", by_alias=True))
    return Rule(
        " || ".join(("!has(self.attach)", f"!has(self.{field})", f"({' && '.join(terms)})")),
        message,
        f".{field}",
        lambda spec: spec.attach is None or getattr(spec, field) == default,
        removes_field=True,
    )


def _beside_attach(cel: str, holds: Callable[[Any], bool], field: str, message: str) -> Rule:
    return Rule(
        f"!has(self.attach) || {cel}", message, field, lambda spec: spec.attach is None or holds(spec)
    )


def _goes_with_its_pod(disk: DiskTierSpec | None) -> bool:
    return disk is None or not disk.volume.outlives_pods


def _needs_no_secret(remote: RemoteTierSpec | None) -> bool:
    return remote is None or not (remote.credentials or remote.tls or remote.mac_key or remote.managed)


@cache
def attach_rules(observability: type[ApiModel]) -> tuple[Rule, ...]:
    """What may stand beside `spec.attach`, as rules of the whole spec.

    Args:
        observability: The model of `spec.observability`.
    """
    able = backends_with(Ability.ATTACHES)
    return (
        _beside_attach(
            f"self.backend in {[backend.value for backend in able]}",
            lambda spec: spec.backend in able,
            ".backend",
            f"only backend {one_of(able)} goes into engines that others start; write it, or remove attach",
        ),
        _left_out(
            EngineSpec, "engine", "with attach vLLM runs as its owner says, in their pod: remove engine"
        ),
        _beside_attach(
            "(self.replicas == 1 && !has(self.autoscaling))",
            lambda spec: spec.replicas == 1 and spec.autoscaling is None,
            ".replicas",
            "with attach the owner of the pods says how many there are: remove replicas and autoscaling",
        ),
        _left_out(RouterSpec, "router", "with attach no picker is made: remove router"),
        _left_out(
            observability, "observability", "with attach no monitoring objects are made: remove observability"
        ),
        _beside_attach(
            "(!has(self.imagePullSecrets) || size(self.imagePullSecrets) == 0)",
            lambda spec: not spec.image_pull_secrets,
            ".imagePullSecrets",
            "pods that attach selects pull with Secrets of their own: remove imagePullSecrets",
        ),
        _beside_attach(
            "self.tiers.cpu.memlock.policy != 'Require'",
            lambda spec: spec.tiers.cpu.memlock.policy is not Policy.REQUIRE,
            ".tiers.cpu.memlock.policy",
            "Require needs IPC_LOCK, and attach gives pods no rights: write Prefer, which locks what the pod may",
        ),
        _beside_attach(
            "!has(self.tiers.disk) || has(self.tiers.disk.volume.emptyDir) || has(self.tiers.disk.volume.ephemeral)",
            lambda spec: _goes_with_its_pod(spec.tiers.disk),
            ".tiers.disk.volume",
            "attach gives each pod a disk that goes with it: write emptyDir or ephemeral",
        ),
        _beside_attach(
            "!has(self.tiers.remote) || !(has(self.tiers.remote.credentials) || has(self.tiers.remote.tls) || has(self.tiers.remote.macKey) || has(self.tiers.remote.managed))",
            lambda spec: _needs_no_secret(spec.tiers.remote),
            ".tiers.remote",
            "pods that attach selects are given no Secrets: remove credentials, tls, macKey and managed",
        ),
        _beside_attach(
            f"!has(self.tiers.remote) || self.tiers.remote.engine != '{RemoteEngine.MOONCAKE}'",
            lambda spec: spec.tiers.remote is None or spec.tiers.remote.engine is not RemoteEngine.MOONCAKE,
            ".tiers.remote.engine",
            f"attach does not size the processes of {RemoteEngine.MOONCAKE}'s clients: use a store of engine {RemoteEngine.REDIS}",
        ),
    )
