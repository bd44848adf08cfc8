"""Why an engine that was given a tier leaves itself alone, and what its owner can do."""

from collections.abc import Mapping
from typing import Final

from kvtier_connector.attach.decisions import Reason

_ADVICE: Final[Mapping[str, str]] = {
    Reason.HAS_CONNECTOR.value: (
        "its engine has another KV connector: remove --kv-transfer-config and --kv-offloading-size from its "
        "command, or leave these pods out of spec.attach.podSelector"
    ),
    Reason.UNSUPPORTED_MODEL.value: (
        "its model has an encoder only, or beside a decoder, for which vLLM has no connectors: leave these "
        "pods out of spec.attach.podSelector"
    ),
    Reason.NO_PREFIX_CACHING.value: (
        "its engine's prefix caching is off, which a tier stands behind: remove --no-enable-prefix-caching "
        "from its command"
    ),
    Reason.PIPELINE_PARALLEL.value: (
        "its engine is pipeline-parallel: use tensor or data parallelism, with --pipeline-parallel-size 1"
    ),
    Reason.SEVERAL_NODES.value: (
        "its engine's ranks are on several nodes, which cannot share the tier's memory: keep an engine on one"
    ),
    Reason.SEVERAL_SERVERS.value: (
        "its pod has several servers, none of which knows its part of the tier: start its data-parallel "
        "ranks by one (--data-parallel-size-local), without --data-parallel-multi-port-external-lb"
    ),
    Reason.UNKNOWN_EXECUTOR.value: (
        "its engine's ranks are started by Ray or another launcher: remove --distributed-executor-backend "
        "and --data-parallel-backend, and keep an engine on one node"
    ),
    Reason.UNKNOWN_DEVICE.value: "its engine's device is neither a GPU with CUDA nor a CPU",
    Reason.UNKNOWN_VERSION.value: (
        "its vLLM is not of a minor that kvtier runs in: its log names those, take an image of one"
    ),
    Reason.BAD_SETTINGS.value: (
        "its engine did not understand the settings: have the pod made anew, and if that does not help, its "
        "log says what is wrong"
    ),
    Reason.PACKAGES_MISSING.value: (
        "its image lacks something that the connector imports: its log names it, take vLLM's own image or "
        "add it"
    ),
    Reason.FAILED.value: "its engine could not be given the tier: its log says why, in a line with `kvtier`",
}
KNOWN: Final = frozenset(_ADVICE)
"""Reasons that engines of this version's connector have."""


def is_left_alone(reason: str) -> bool:
    """Whether an engine's `kvtier_attach_info` says that it has no tier; not where it says nothing."""
    return reason not in ("", Reason.ATTACHED.value)


def advice(reason: str) -> str:
    """One sentence: what is in the way, and what to do; for reasons of a newer connector too."""
    return _ADVICE.get(reason, _ADVICE[Reason.FAILED.value])
