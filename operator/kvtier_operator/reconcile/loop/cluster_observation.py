"""What one plan depends on beside the resource: nodes, storage classes, the model, the running engines."""

from dataclasses import dataclass

from kvtier_operator.planning.base.owner_policy import OwnerPolicy
from kvtier_operator.planning.cluster.storage import StorageClass
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.observed import NOTHING_FOUND, EngineFindings, Observed
from kvtier_operator.reconcile.cache.resources import CachedResource
from kvtier_operator.reconcile.cache.watches import NOT_INSTALLED, Watches
from kvtier_operator.reconcile.facts.cached_plan import CachedPlan
from kvtier_operator.reconcile.facts.engine_observation import hash_engine


@dataclass(frozen=True, slots=True)
class ClusterObservation:
    """What is observed of the cluster for one plan.

    Attributes:
        observed: Input of the planner.
        nodes_version: Version of the node cache that `observed` was read from.
        engine_hash: Hash of the part of the spec that engines are started with.
        nodes_unknown: Why the nodes are not known; empty where they are.
        engine_findings: What a running engine reported of its tiers beside their sizes.
        storage_classes: The cluster's; None where they are not known.
        storage_version: Version of the cache that they were read from.
    """

    observed: Observed
    nodes_version: int
    engine_hash: str
    nodes_unknown: str = ""
    engine_findings: EngineFindings = NOTHING_FOUND
    storage_classes: tuple[StorageClass, ...] | None = None
    storage_version: int = 0

    def is_planned_by(self, plan: CachedPlan) -> bool:
        """Whether a plan of the same generation was made from the same observation."""
        return (
            plan.nodes_version,
            plan.storage_version,
            plan.engine_tokens,
            plan.engine_findings,
            plan.serves_scaled_objects,
        ) == (
            self.nodes_version,
            self.storage_version,
            self.observed.engine,
            self.engine_findings,
            self.observed.serves_scaled_objects,
        )


def engine_hash_of(resource: CachedResource) -> str:
    """Hash of the part of the spec that engines are started with, computed once a generation."""
    plan = resource.state.cached_plan
    if plan and plan.generation == resource.generation:
        return plan.engine_hash
    return hash_engine(resource.spec)


def observe_cluster(
    resource: CachedResource, watches: Watches, images: ImageSource, policy: OwnerPolicy
) -> ClusterObservation:
    """Reads from the caches what a plan of the resource depends on.

    Args:
        resource: The resource as last seen, with what is known of its engines and its model.
        watches: The cluster's nodes and storage classes.
        images: Where this cluster gets the images from that no resource names.
        policy: What the cluster's owner lets resources ask for.
    """
    nodes, classes, state = watches.nodes, watches.storage_classes, resource.state
    engine_hash = engine_hash_of(resource)
    is_current = state.observation is not None and state.observation.engine_hash == engine_hash
    engine = state.observation if is_current else None
    model = state.model
    return ClusterObservation(
        observed=Observed(
            model_config=model.parsed if model else None,
            model_config_source=model.source if model else "",
            model_config_missing=model.missing if model else "",
            nodes=nodes.all,
            engine=engine.tokens if engine else None,
            images=images,
            policy=policy,
            serves_scaled_objects=watches.why_not("ScaledObject") != NOT_INSTALLED,
        ),
        nodes_version=nodes.version,
        engine_hash=engine_hash,
        nodes_unknown=watches.nodes_unknown,
        engine_findings=engine.findings if engine else NOTHING_FOUND,
        storage_classes=classes.all,
        storage_version=classes.version,
    )
