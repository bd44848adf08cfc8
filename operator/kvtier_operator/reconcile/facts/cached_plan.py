"""What is kept of a resource between reconciliations: plan, engines' report, configuration of the model."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import orjson

from kvtier_common.one_line import one_line
from kvtier_common.tier import Tier
from kvtier_operator.api.resource import ConditionStatus, Source
from kvtier_operator.planning.attach.plan import AttachPlan
from kvtier_operator.planning.base.names import COMPONENT_LABEL
from kvtier_operator.planning.observed import EngineFindings, EngineTokens, PrefixFindings, TierFindings
from kvtier_operator.planning.pod_template.template import OF_COMPONENT
from kvtier_operator.planning.scaling import Scaling
from kvtier_operator.planning.tiers.capacity import differs
from kvtier_operator.reconcile.api_server import BY_NAME, KVCACHETIER, Kind, Ref

MAX_MESSAGE_CHARACTERS: Final = 4096
"""Far below the 32,768 that the API takes: a person reads it, and every change of it is a write."""
_MAX_JOINED_CHARACTERS: Final = 8000
"""Of a message that quotes other conditions; one too long for the API would have the whole status refused."""
FIELD_MANAGER: Final = "kvtier"
APPLIED_HASH: Final = "kvtier.dev/applied-hash"
"""Annotation with the digest of what was applied: only it shows that a field is no longer desired."""
_TEMPLATES: Final = {component.value: path for component, path in OF_COMPONENT.items()}
_NOTHING: Final = EngineTokens()


@dataclass(frozen=True, slots=True)
class UntimedCondition:
    """A condition without `lastTransitionTime`, which depends on the status before."""

    # Accepted, BudgetFits, NodesFit, EnginesReady, RouterReady, AutoscalerReady, StoreReady, Attached or
    # Ready
    type: str
    status: ConditionStatus
    reason: str
    message: str  # what a person needs to know, with numbers

    @property
    def is_true(self) -> bool:
        """Whether the condition holds."""
        return self.status is ConditionStatus.TRUE


def _condition(status: ConditionStatus, type_: str, reason: str, message: str) -> UntimedCondition:
    return UntimedCondition(type_, status, reason, one_line(message, MAX_MESSAGE_CHARACTERS))


true_condition: Final = partial(_condition, ConditionStatus.TRUE)
false_condition: Final = partial(_condition, ConditionStatus.FALSE)
unknown_condition: Final = partial(_condition, ConditionStatus.UNKNOWN)
"""One that holds, one that does not, and one of which nothing can be said yet."""


def with_transition_time(
    condition: UntimedCondition, before: Sequence[Mapping[str, Any]], generation: int, now: str
) -> dict[str, Any]:
    """The condition as the status has it; its transition time moves only with its status or reason."""
    known = next((entry for entry in before if entry["type"] == condition.type), None)
    same = known and (known["status"], known["reason"]) == (condition.status.value, condition.reason)
    return {
        "type": condition.type,
        "status": condition.status.value,
        "observedGeneration": generation,
        "lastTransitionTime": known["lastTransitionTime"] if known and same else now,
        "reason": condition.reason,
        "message": one_line(condition.message, _MAX_JOINED_CHARACTERS),
    }


@dataclass(frozen=True, slots=True)
class DesiredObject:
    """One object that a plan asks for."""

    ref: Ref
    digest: str  # SHA-256 of the object as the planner built it, 16 hexadecimal digits
    body: Mapping[str, Any] | None = None  # the object; None where only ref and digest are kept
    # path of the field whose pod template is a part of it, which only the API server can check; empty where
    # there is none
    template: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of the object."""
        return BY_NAME[self.ref.kind]

    @property
    def leaves_replicas(self) -> bool:
        """Whether it is a Deployment whose number of pods is somebody else's."""
        return self.ref.kind == "Deployment" and "replicas" not in (self.body or {}).get("spec", {})

    def with_uid(self, uid: str) -> "DesiredObject":
        """The same for the live object with this uid: one that has since taken its name is left alone."""
        body = self.body or {}
        return replace(self, body={**body, "metadata": {**body["metadata"], "uid": uid}})

    def without_uid(self) -> "DesiredObject":
        """The same for a new object in place of a deleted one."""
        body = self.body or {}
        metadata = {key: value for key, value in body["metadata"].items() if key != "uid"}
        return replace(self, body={**body, "metadata": metadata})

    def without_body(self) -> "DesiredObject":
        """The same without its body: small enough to keep for thousands of resources."""
        return replace(self, body=None)


def desired_objects(
    objects: Iterable[Mapping[str, Any]], *, name: str, uid: str, templates: Collection[str] = ()
) -> tuple[DesiredObject, ...]:
    """Makes a resource the owner of its objects."""
    owner = owner_reference(name, uid)
    return tuple(_desired_object(manifest, owner, templates) for manifest in objects)


def owner_reference(name: str, uid: str) -> dict[str, Any]:
    """What an object has of the resource that owns it, with which it is deleted."""
    return {
        "apiVersion": KVCACHETIER.api_version,
        "kind": KVCACHETIER.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        # the resource can be deleted although one of its objects is slow to
        "blockOwnerDeletion": False,
    }


def _desired_object(
    document: Mapping[str, Any], owner: Mapping[str, Any], templates: Collection[str]
) -> DesiredObject:
    text = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(text).hexdigest()[:16]
    annotations = {**document["metadata"].get("annotations", {}), APPLIED_HASH: digest}
    metadata = {**document["metadata"], "annotations": annotations, "ownerReferences": [dict(owner)]}
    component = metadata["labels"].get(COMPONENT_LABEL, "")
    template = _TEMPLATES.get(component, "") if document["kind"] == "Deployment" else ""
    ref = Ref(document["kind"], metadata.get("namespace", ""), metadata["name"])
    body = {**document, "metadata": metadata}
    return DesiredObject(ref, digest, body, template if template in templates else "")


@dataclass(frozen=True, slots=True)
class CachedPlan:
    """The plan of one generation of a resource, without the bodies of its objects."""

    generation: int
    rejected: bool  # whether the spec is rejected, so that nothing is applied
    # the desired objects without their bodies; none where the spec is rejected
    desired: tuple[DesiredObject, ...]
    accepted: UntimedCondition
    budget_fits: UntimedCondition
    nodes_fit: UntimedCondition
    nodes_version: int  # version of the node cache that `nodes_fit` was computed from
    storage_version: int  # version of the storage classes that `budget_fits` was computed from
    engine_hash: str  # hash of the part of the spec that engines are started with
    # sizes of its tiers that a running engine reported; None where none had
    engine_tokens: EngineTokens | None = None
    engine_findings: EngineFindings = field(default_factory=dict)  # what else it reported of them
    # what it reported of the resource's prefixes, by their names
    prefix_findings: Mapping[str, PrefixFindings] = field(default_factory=dict)
    prefixes: tuple[str, ...] = ()  # names of the prefixes that engines compute
    most_tokens: EngineTokens = _NOTHING  # the largest sizes that an engine's report is believed
    most_pinned_bytes: int = 0  # the most locked memory that an engine's report is believed
    engine_port: int = 0
    tiers: Mapping[str, Any] = field(default_factory=dict)
    router: Mapping[str, Any] = field(default_factory=dict)
    selector: str = ""
    startup_s: int = 0  # seconds an engine has to start
    scaling: Scaling | None = None  # what scales the engines, and by what; None where the resource does
    # the Secret to make for its store, without its password; None where there is none to make
    store_secret: Mapping[str, Any] | None = None
    serves_scaled_objects: bool | None = None  # whether the cluster had KEDA when it was planned
    attach: AttachPlan | None = None  # what pods of others are given; None where the resource has its own


_NOT_THE_ENGINES: Final = ("replicas", "autoscaling", "router", "observability")
"""Parts of the spec that engines are not started with, or that change nothing of what they report."""


@dataclass(frozen=True, slots=True)
class EngineObservation:
    """The report of one engine."""

    engine_hash: str  # hash of the part of the spec that it was started with
    tokens: EngineTokens  # sizes of its tiers
    findings: EngineFindings = field(default_factory=dict)  # what else it reported of them
    # what it reported of the resource's prefixes, by their names
    prefixes: Mapping[str, PrefixFindings] = field(default_factory=dict)
    lacks_prefixes: bool = False  # whether it has yet to compute some of them

    @property
    def complete(self) -> bool:
        """Whether all sizes are known; a disk tier's is reported together with the CPU tier's."""
        return {Tier.GPU, Tier.CPU} <= self.tokens.by_tier.keys()

    @property
    def may_change(self) -> bool:
        """Whether a later report may differ: engines measure whether a tier pays for as long as they run."""
        measures = any(of_tier.pays is not None for of_tier in self.findings.values())
        return measures or self.lacks_prefixes


def hash_engine(document: bytes) -> str:
    """Hash of the part of a spec that engines are started with: equal while they need not restart."""
    spec = orjson.loads(document).get("spec") or {}
    kept = {name: value for name, value in spec.items() if name not in _NOT_THE_ENGINES}
    return hashlib.sha256(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def merge_observations(before: EngineObservation | None, now: EngineObservation) -> EngineObservation:
    """The observation after another report: engines of one spec differ a little from start to start."""
    if before is None or before.engine_hash != now.engine_hash:
        return now
    tokens = before.tokens
    sizes = {tier: _steady(tokens.by_tier.get(tier), now.tokens.by_tier.get(tier)) for tier in Tier}
    return EngineObservation(
        now.engine_hash,
        EngineTokens(
            {tier: size for tier, size in sizes.items() if size is not None},
            block=tokens.block if now.tokens.block is None else now.tokens.block,
            gpu_blocks=_steady(tokens.gpu_blocks, now.tokens.gpu_blocks),
        ),
        {
            **before.findings,
            **{tier: _merge_findings(before.findings.get(tier), of) for tier, of in now.findings.items()},
        },
        # each is told when it is known: engines ask again and again, and find it each time
        prefixes={**now.prefixes, **before.prefixes},
        lacks_prefixes=now.lacks_prefixes,
    )


def observation_from_status(
    status: Mapping[str, Any], generation: int, engine: str
) -> EngineObservation | None:
    """What an earlier process of the operator observed, if the spec is still the same."""
    if status.get("observedGeneration") != generation:
        return None
    tiers = status.get("tiers") or {}
    reported = {tier: tiers.get(tier.label) or {} for tier in Tier}
    observed = {tier: _observed_tokens(report) for tier, report in reported.items()}
    tokens = EngineTokens(
        {tier: size for tier, size in observed.items() if size is not None},
        block=reported[Tier.GPU].get("blockTokens"),
    )
    findings = {
        tier: TierFindings(of_tier.get("pinnedBytes"), of_tier.get("pays"))
        for tier, of_tier in reported.items()
        if of_tier.keys() & {"pinnedBytes", "pays"}
    }
    prefixes = {
        told["name"]: PrefixFindings(told["tokens"], told.get("cachedTokens"))
        for told in status.get("prefixes") or ()
        if "tokens" in told
    }
    lacking = len(prefixes) < len(status.get("prefixes") or ())
    return (
        None
        if tokens == EngineTokens()
        else EngineObservation(engine, tokens, findings, prefixes, lacks_prefixes=lacking)
    )


def _merge_findings(before: TierFindings | None, now: TierFindings) -> TierFindings:
    if before is None:
        return now
    pays = before.pays if now.pays is None else now.pays
    return TierFindings(_steady(before.pinned_bytes, now.pinned_bytes), pays)


def _steady(before: int | None, now: int | None) -> int | None:
    if before is None or (now is not None and differs(now, before)):
        return now
    return before


def _observed_tokens(tier: Mapping[str, Any]) -> int | None:
    return tier.get("tokens") if tier.get("source") == Source.OBSERVED else None


@dataclass(frozen=True, slots=True)
class FoundModelConfig:
    """The model's configuration for one generation of a resource, or why there is none."""

    generation: int
    config: str = ""  # the config.json, compact; empty where it is not needed or was not found
    source: str = ""  # where it came from, for people
    missing: str = ""  # why it was not found
    retry: bool = False  # whether it may be found later without a change of the resource
    from_config_map: bool = False  # whether it comes from a ConfigMap, which may be corrected

    @property
    def parsed(self) -> Mapping[str, Any] | None:
        """The configuration; None without one."""
        if not self.config:
            return None
        config: Mapping[str, Any] = json.loads(self.config)  # noqa: TID251 - as `compact` wrote it
        return config
