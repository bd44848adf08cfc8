"""The Plan: everything that must agree, computed once from one KVCacheTier."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.planning.kv_cache.geometry import Geometry
from kvtier_operator.planning.observed import EngineTokens
from kvtier_operator.planning.pod.budget_plan import Budget
from kvtier_operator.planning.pod.container_parts import ConfigFile, Mount, Sidecar
from kvtier_operator.planning.pod.demands import Demands
from kvtier_operator.planning.pod.ending import Ending
from kvtier_operator.planning.router.router_plan import RouterPlan
from kvtier_operator.planning.scaling.scaler import Scaler
from kvtier_operator.planning.tiers.tier_plan import TiersPlan
from kvtier_operator.planning.verdict import CheckResult, Outcome


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the sizing report with how it came about.

    Attributes:
        name: What it is, such as `KV bytes per token`.
        value: The number, in the unit that the name says.
        how: The formula with its numbers filled in, such as `2 x 64 layers x 8 heads x 128 x 2 B`.
    """

    name: str
    value: int
    how: str


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """The engine as a container or a process.

    Attributes:
        image: Container image.
        args: All vLLM arguments after the program, the model's name included.
        env: Plain environment variables.
        env_from_resource: Variables passed through from the resource (with valueFrom), as in a pod.
        files: Files it needs.
        mounts: Volumes it needs.
        sidecars: Processes beside it.
        scratch_dirs: Folders to empty before each start.
        port: Port of the OpenAI-compatible server.
    """

    image: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    env_from_resource: tuple[Mapping[str, Any], ...]
    files: tuple[ConfigFile, ...]
    mounts: tuple[Mount, ...]
    sidecars: tuple[Sidecar, ...]
    port: int
    scratch_dirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DoctorPlan:
    """What looks at the pod before vLLM starts.

    Attributes:
        image: kvtier's own image.
        demands: What the pod must find.
    """

    image: str
    demands: Demands


@dataclass(frozen=True, slots=True)
class Plan:
    """One KVCacheTier, worked out. Rendered to YAML, applied to a cluster or run as processes.

    `weights` is the volume that a pod keeps the model in; None where it makes none. `most_tokens` is the most
    that a running engine may say of its tiers. `scaler` is who says how many engines there are; None where
    the resource does.
    """

    resource: KVCacheTier
    geometry: Geometry
    tiers: TiersPlan
    most_tokens: EngineTokens
    budget: Budget
    ending: Ending
    engine: EnginePlan
    weights: Mount | None
    doctor: DoctorPlan
    router: RouterPlan
    scaler: Scaler | None
    pull_secrets: tuple[str, ...]
    checks: tuple[CheckResult, ...]
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]

    @property
    def rejected(self) -> bool:
        """Whether any check refuses this plan."""
        return any(check.outcome is Outcome.REJECT for check in self.checks)
