"""Why a pod is not given the tiers that select it."""

from dataclasses import dataclass
from enum import StrEnum

from kvtier_connector.attach.decisions import Reason as EngineReason


class Reason(StrEnum):
    """CamelCase, as in `status.attach.pods`."""

    ALREADY_ATTACHED = "AlreadyAttached"
    SEVERAL_TIERS = "SeveralTiers"
    MIRROR_POD = "MirrorPod"
    QUEUED = "Queued"
    SCHEDULING_GATED = "SchedulingGated"
    WINDOWS = "Windows"
    POD_RESOURCES = "PodResources"
    CONTAINER_NOT_FOUND = "ContainerNotFound"
    CONTAINER_NOT_CLEAR = "ContainerNotClear"
    NAME_TAKEN = "NameTaken"
    PATH_TAKEN = "PathTaken"
    OWN_SETTINGS = "OwnSettings"
    UNREADABLE_VARIABLE = "UnreadableVariable"
    NO_LIMITS = "NoLimits"
    NO_ENGINE = "NoEngine"
    NOT_UNDERSTOOD = "NotUnderstood"
    # as the engine itself says it
    HAS_CONNECTOR = EngineReason.HAS_CONNECTOR.value
    NO_PREFIX_CACHING = EngineReason.NO_PREFIX_CACHING.value
    PIPELINE_PARALLEL = EngineReason.PIPELINE_PARALLEL.value
    SEVERAL_NODES = EngineReason.SEVERAL_NODES.value
    SEVERAL_SERVERS = EngineReason.SEVERAL_SERVERS.value
    UNKNOWN_EXECUTOR = EngineReason.UNKNOWN_EXECUTOR.value
    UNKNOWN_DEVICE = EngineReason.UNKNOWN_DEVICE.value
    UNKNOWN_VERSION = EngineReason.UNKNOWN_VERSION.value


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A pod stays as its owner wrote it."""

    reason: Reason
    message: str  # one sentence: what is in the way, and what to do where there is something


class LeftAloneError(Exception):
    """Something of the pod is in the way."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.left_alone = LeftAlone(reason, message)
