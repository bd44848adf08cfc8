"""NetworkPolicy of the engines: KV events carry the tokens of all prompts, and are the picker's alone."""

from typing import Any, Final

from kvtier_operator.planning.objects.ingress import ingress_policy, ports
from kvtier_operator.planning.objects.names import Component, Names
from kvtier_operator.planning.plan import Plan
from kvtier_scorer.config.contract import EVENTS_PORT, REPLAY_PORT

_LAST: Final = 65535


def engine_network_policy(plan: Plan) -> dict[str, Any] | None:
    """All ports but those of events are for all, as without it; None where no events are published.

    A policy knows no "all but these", so the rest is told in ranges. The serving port stands by itself too:
    a network that does not know `endPort` takes of a range its first port alone.
    """
    spec = plan.resource.spec
    if not spec.router.kv_events or spec.router.network_policy.enabled is False:
        return None
    names, ranks = Names.of(plan), spec.engine.data_parallel_size
    event_ports = [(EVENTS_PORT, EVENTS_PORT + ranks - 1), (REPLAY_PORT, REPLAY_PORT + ranks - 1)]
    picker = {"podSelector": {"matchLabels": names.selector(Component.PICKER)}}
    return ingress_policy(
        names,
        names.engine,
        Component.ENGINE,
        (
            {"ports": [ports(*each) for each in event_ports], "from": [picker]},
            {"ports": [ports(plan.engine.port), *_all_but(event_ports)]},
        ),
    )


def _all_but(ranges: list[tuple[int, int]]) -> list[dict[str, Any]]:
    begins = [1, *(last + 1 for _, last in ranges)]
    ends = [*(first - 1 for first, _ in ranges), _LAST]
    rest = [ports(first, last) for first, last in zip(begins, ends, strict=True) if first <= last]
    return [*rest, ports(1, _LAST, "UDP"), ports(1, _LAST, "SCTP")]
