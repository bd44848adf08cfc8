"""The sizing report as data: the names are part of kvtier's command line and do not change."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_common.tier import OF_A_POD, Tier
from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.planning.arguments.effects import effects_of
from kvtier_operator.planning.arguments.secret_options import SECRETS
from kvtier_operator.planning.base.tier_plan import TierPlan
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.engine_memory import BudgetLine
from kvtier_operator.planning.units import quantity
from kvtier_operator.planning.verdict import most_important_first

HIDDEN: Final = "(not shown)"


def report(plan: Plan) -> dict[str, Any]:
    """What `kvtier plan -o json` prints for one resource; a missing tier is None."""
    resource = plan.resource.metadata
    return {
        "resource": {"namespace": resource.namespace, "name": resource.name},
        "geometry": {
            "kvBytesPerToken": plan.geometry.kv_bytes_per_token,
            "kvBytesPerTokenPerRank": plan.geometry.kv_bytes_per_token_per_rank,
            "bytesPerPrefix": plan.geometry.bytes_per_prefix,
            "weightsBytes": plan.geometry.weights_bytes,
            "source": plan.geometry.shape.source,
        },
        "tiers": {tier.label: _tier(plan.tiers.by_tier.get(tier)) for tier in Tier},
        "router": {
            "flavor": str(plan.router.flavor),
            "version": plan.router.version,
            "image": plan.router.image,
            "url": plan.router.gateway.url if plan.router.gateway else None,
            "replicas": plan.resource.spec.router.replicas,
            "requests": dict(plan.router.resources.requests),
            "limits": dict(plan.router.resources.limits),
            "tokensPerEntry": plan.router.tokens_per_entry,
            "entries": {f"{tier.label}Prefix": plan.router.entries.get(tier) for tier in OF_A_POD},
            "config": plan.router.config,
        },
        "engine": _engine(plan),
        "pod": {
            "requests": dict(plan.budget.requests),
            "limits": dict(plan.budget.limits),
            "shmBytes": plan.budget.shm_bytes,
            "startupSeconds": plan.budget.startup_s,
            "drainSeconds": plan.ending.drain_s,
            "graceSeconds": plan.ending.grace_s,
            "memory": _lines(plan.budget.memory),
            "storage": _lines(plan.budget.storage),
        },
        "options": [
            {"option": effect.option, "actsOn": str(effect.kind), "rule": effect.rule}
            for effect in effects_of(plan.resource.spec.engine.extra_args)
        ],
        "figures": [
            {"name": figure.name, "value": figure.value, "how": figure.how} for figure in plan.figures
        ],
        "checks": [
            {
                "name": check.name,
                "outcome": str(check.outcome),
                "reason": check.reason,
                "message": check.message,
                "field": check.field,
            }
            for check in most_important_first(plan.checks)
        ],
        "notes": list(plan.notes),
    }


def _lines(lines: tuple[BudgetLine, ...]) -> list[dict[str, Any]]:
    return [{"what": line.what, "bytes": line.bytes, "why": line.why} for line in lines]


def _tier(tier: TierPlan | None) -> dict[str, Any] | None:
    if tier is None:
        return None
    pages = tier.hugepages
    return {
        "bytes": tier.capacity_bytes,
        "bytesPerRank": tier.bytes_per_rank,
        "tokens": tier.tokens,
        "hugepages": {"pageSize": quantity(pages.page_bytes), "pages": pages.pages} if pages else None,
    }


def _engine(plan: Plan) -> dict[str, Any]:
    engine = plan.engine
    return {
        "image": engine.image,
        "args": list(shown_args(plan)),
        "env": dict(shown_env(plan)),
        "files": {file.path: file.content for file in engine.files},
        "sidecars": [
            {"name": sidecar.name, "command": list(sidecar.command), "memoryBytes": sidecar.memory_bytes}
            for sidecar in engine.sidecars
        ],
    }


def shown_args(plan: Plan) -> tuple[str, ...]:
    """The engine's arguments; those of `SECRETS` may have several values, up to the next option."""
    shown, secret = [], False
    arguments = {argument.position: argument for argument in CommandLine(plan.engine.args).arguments}
    for position, word in enumerate(plan.engine.args):
        if position not in arguments:
            shown.append(HIDDEN if secret else word)
            continue
        secret = arguments[position].means(*SECRETS)
        name, is_joined, _ = word.partition("=")
        shown.append(f"{name}={HIDDEN}" if secret and is_joined else word)
    return tuple(shown)


def shown_env(plan: Plan) -> Mapping[str, str]:
    """The engine's variables; a value that the resource has itself its reader finds there."""
    own = {variable.name for variable in plan.resource.spec.engine.env}
    return {name: HIDDEN if name in own else value for name, value in plan.engine.env.items()}
