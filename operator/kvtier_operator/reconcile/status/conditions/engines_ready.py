"""EnginesReady: whether the engine pods run, and if not, what keeps them."""

from collections.abc import Sequence
from typing import Final

from kvtier_operator.reconcile.apply.failure import Failure
from kvtier_operator.reconcile.facts.deployment import DeploymentFacts
from kvtier_operator.reconcile.facts.pod import PodTrouble
from kvtier_operator.reconcile.status.not_created import not_created
from kvtier_operator.reconcile.status.rollout import counts, hindrance
from kvtier_operator.reconcile.status.verdict import Verdict, fails, holds

TYPE: Final = "EnginesReady"
_NO_IMAGE_VOLUME: Final = (
    "the API server left the image volume of spec.model.source out of the pods: Kubernetes mounts images by "
    "default from 1.35, and before with its feature gate ImageVolume; turn it on, or write pvc://"
)


def engines_ready(
    engine: DeploymentFacts | None,
    troubles: Sequence[PodTrouble],
    failures: Sequence[Failure],
    startup_s: int = 0,
    tiers: str = "",
) -> Verdict:
    """By the Deployment's status and the pods that are not ready.

    Args:
        engine: The engines' Deployment; None where there is none yet.
        troubles: Engine pods that are not ready, the most telling first.
        failures: Objects of the engines that could not be applied.
        startup_s: Seconds an engine has to start.
        tiers: What an engine said of its tiers.
    """
    if failures:
        return fails(TYPE, failures[0].reason, "; ".join(each.message for each in failures))
    if engine is None:
        return not_created(TYPE, "the engines'")
    count = counts(engine, "engine pods")
    if engine.complete:
        reason = "AllReady" if engine.wanted else "ScaledToZero"
        return holds(TYPE, reason, f"{count}; {tiers}" if engine.wanted and tiers else count)
    if engine.lacks_model:
        return fails(TYPE, "ImageVolumesOff", f"{count}; {_NO_IMAGE_VOLUME}")
    reason, said = hindrance(engine, troubles)
    if not said and startup_s:
        said = f"one has {startup_s} s to start"
    return fails(TYPE, reason, f"{count}; {said}" if said else count)
