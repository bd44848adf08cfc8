"""What a change of a resource costs those who send requests."""

from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.units import count


def rollout(plan: Plan) -> str:
    """How engines are replaced, and how long that takes, but for pulling a new image."""
    spec, start_s = plan.resource.spec, _start_s(plan)
    away_s = plan.ending.grace_s + start_s
    pods = spec.most_replicas
    if pods == 0:
        return "no engines: replicas is 0"
    if gap := nobody_serves(plan):
        return gap
    change, all_take = "a change of model, engine or tiers", f"{count(away_s * pods)} s"
    if spec.engine.rollout.surplus_pods:
        return (
            f"{change} starts one engine more before one goes: none is away, nodes need the room, and all "
            f"take {all_take}"
        )
    return (
        f"{change} replaces the engines one at a time, in place: one is away for up to {count(away_s)} s, "
        f"all take {all_take}"
    )


def nobody_serves(plan: Plan) -> str | None:
    """What a change does where the only engine is replaced in place; None where one serves meanwhile."""
    spec = plan.resource.spec
    if spec.most_replicas != 1 or spec.engine.rollout.surplus_pods:
        return None
    away = f"{count(plan.ending.grace_s + _start_s(plan))} s"
    return (
        f"a change of model, engine or tiers replaces the engine in place: nobody serves for up to {away}; a "
        "second replica or spec.engine.rollout.strategy: Surge keeps one serving"
    )


def _start_s(plan: Plan) -> int:
    return plan.budget.fetch_s + plan.budget.startup_s
