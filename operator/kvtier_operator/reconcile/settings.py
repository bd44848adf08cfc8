"""What the operator is given when it starts, and how long it waits; tests pass shorter waits."""

from dataclasses import dataclass, field
from typing import Final

from kvtier_common.backoff import Backoff
from kvtier_operator.lease_seconds import DEFAULT_LEASE_S
from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.images import ImageSource

RETRY: Final = Backoff(first_s=0.2, longest_s=60.0)
"""After failed requests and failed reconciliations."""
_ENGINE_RETRY: Final = Backoff(first_s=5.0, longest_s=600.0)


@dataclass(frozen=True, slots=True)
class Options:
    """What the operator serves, and how."""

    namespaces: tuple[str, ...] = ()  # namespaces to serve; none for the whole cluster
    # where this cluster gets the images from that no resource names
    images: ImageSource = field(default_factory=ImageSource)
    # what the cluster's owner lets resources ask for
    policy: OwnerPolicy = field(default_factory=OwnerPolicy)
    # Lease in its own namespace that an operator holds while it reconciles; none for no election
    lease: str | None = None
    lease_s: int = DEFAULT_LEASE_S  # how long a Lease outlives its holder
    # whether to ask Hugging Face for the configuration of a model that the catalogue lacks
    asks_hub: bool = False


@dataclass(frozen=True, slots=True)
class ReconcileTimings:
    """How soon a resource is reconciled after a change, in seconds; changes within that time are one."""

    manifest_s: float = 0.02  # after an edit of a live object: repaired at once, but several edits together
    report_s: float = 0.3  # after a change of what pods, Deployments and routes report, which comes in bursts
    surroundings_s: float = 2.0  # after a change of nodes or storage classes
    stuck_s: float = 300.0  # longer than any request with its retries (client timeout 30 s, back-off 60 s)


@dataclass(frozen=True, slots=True)
class OwnershipTimings:
    """How long answers about owners hold, and how often they are asked for."""

    fresh_s: float = 1.0  # how old a list of owners may be
    # requests before an owner stays unknown. Where three in ten fail, the lists of 9 kinds all come in 98 of
    # 100 reconciliations; asked for once each, in 4.
    tries: int = 5
    retry: Backoff = RETRY  # waits between the tries, three seconds in all


@dataclass(frozen=True, slots=True)
class EngineTimings:
    """How often running engines are asked for their tiers."""

    request_s: float = 5.0  # longest time that one answer may take
    # waits after answers without sizes: a tier's size is known from the engine's first step on
    retry: Backoff = _ENGINE_RETRY
    again_s: float = 600.0  # wait after an answer that may still change


@dataclass(frozen=True, slots=True)
class RetireTimings:
    """How often it is looked at which engines are to go first."""

    round_s: float = 30.0  # wait between two rounds over all engines that an autoscaler scales
    forbidden_s: float = 600.0  # wait in a namespace in which the operator may not write pods
    resource_s: float = 20.0  # longest time that engines of one resource may take in a round


@dataclass(frozen=True, slots=True)
class WatchTimings:
    """How soon watches notice what they have to ask for."""

    new_crd_s: float = 10.0  # a CRD that was installed. Asked for, not watched: that takes no rights to CRDs.
    new_right_s: float = 60.0  # a right that was granted


@dataclass(frozen=True, slots=True)
class AccessTimings:
    """How often it is asked whether KVCacheTiers can be read."""

    refused_s: float = 2.0  # while they cannot
    # while they can: how soon a right that was taken away is noticed. Kopf tries again for ever and says
    # nothing.
    readable_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Timings:
    """All timings of the operator."""

    access: AccessTimings = field(default_factory=AccessTimings)
    reconcile: ReconcileTimings = field(default_factory=ReconcileTimings)
    ownership: OwnershipTimings = field(default_factory=OwnershipTimings)
    engines: EngineTimings = field(default_factory=EngineTimings)
    watches: WatchTimings = field(default_factory=WatchTimings)
    retire: RetireTimings = field(default_factory=RetireTimings)
