"""A resource's view as data: the names are part of kvtier's command line and do not change."""

from typing import Any

from kvtier_operator.cli.cluster.view.next_step import NextStep
from kvtier_operator.cli.cluster.view.resource import ResourceView


def view_fields(view: ResourceView, step: NextStep) -> dict[str, Any]:
    """What `-o json` prints for one resource; what is not known is None."""
    return {
        "namespace": view.namespace,
        "name": view.name,
        "model": view.model,
        "backend": view.backend,
        "replicas": view.replicas,
        "readyReplicas": view.ready_replicas,
        "url": view.url or None,
        "conditions": [
            {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message}
            for each in view.conditions
        ],
        "pods": [
            {
                "name": each.name,
                "component": each.component,
                "state": each.state,
                "message": each.message,
                "restarts": each.restarts,
                "ageSeconds": round(each.age_s),
                "node": each.node,
            }
            for each in view.pods
        ],
        "engines": {
            "answered": view.engines.engines,
            "promptTokens": view.engines.asked_tokens,
            "prefillTokensPerSecond": view.engines.prefill_tokens_per_s,
            "loadSeconds": view.engines.load_s,
            "growing": view.engines.growing,
            "diskDegraded": view.engines.degraded,
            "diskDoesNotPay": view.engines.unpaid,
        },
        "tiers": {
            each.tier.label: {
                "bytes": each.capacity_bytes,
                "tokens": each.capacity_tokens,
                "filled": each.filled,
                "hitTokens": view.engines.hit_tokens[each.tier],
                "hitRate": each.hit_rate,
                "savedSeconds": each.saved_s,
            }
            for each in view.tiers
        },
        "picker": {
            "flavor": view.flavor,
            "answered": view.picker.pickers,
            "entries": dict(view.entries),
            "tokensPerEntry": view.tokens_per_entry,
            "knownEngines": view.picker.known_engines,
            "staleEngines": view.picker.stale_engines,
            "picks": view.picker.picks,
            "believedShare": view.picker.believed_share,
            "indexFilled": {tier.label: full for tier, full in view.picker.index_share.items()},
        },
        "next": {"text": step.text, "command": step.command},
        "notRead": list(view.unread),
    }
