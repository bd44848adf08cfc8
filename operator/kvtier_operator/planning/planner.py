"""From a resource and what is known of the world to the Plan: the one way for all who need one."""

from typing import Final

from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.backends import plan_backend
from kvtier_operator.planning.base.ending import plan_ending
from kvtier_operator.planning.base.remote_store import secret_notes
from kvtier_operator.planning.checks import run_checks
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.kv_cache.cost import resolve_geometry
from kvtier_operator.planning.objects.monitoring.labels import monitoring_notes
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.pod.budget import plan_budget
from kvtier_operator.planning.pod.doctor import plan_doctor
from kvtier_operator.planning.pod.engine import plan_engine
from kvtier_operator.planning.pod.engine_memory import streaming_notes
from kvtier_operator.planning.pod.kept import prefix_notes
from kvtier_operator.planning.pod_template.template import refuse_templates, template_notes
from kvtier_operator.planning.report.figures import plan_figures
from kvtier_operator.planning.router.clear_keys import clear_key_notes
from kvtier_operator.planning.router.disk_weight import disk_weight_notes
from kvtier_operator.planning.router.router_plan import plan_router
from kvtier_operator.planning.scaling import choose_scaler
from kvtier_operator.planning.store.store_plan import plan_store, store_notes, with_store
from kvtier_operator.planning.tiers import serve_tiers
from kvtier_operator.planning.tiers.capacity import (
    correct_tiers,
    gpu_notes,
    most_tokens,
    plan_tiers,
    tier_notes,
)
from kvtier_operator.planning.weights.device_weights import adapter_notes
from kvtier_operator.planning.weights.pod_weights import plan_weights

_NOT_OURS: Final = (
    "engines are in pods of others, and the resource has none of its own; `kvtier plan` and `kvtier attach` "
    "say what those pods are given"
)


def make_plan(resource: KVCacheTier, observed: Observed) -> Plan:
    """Work one KVCacheTier out.

    The plan of a resource that a check refuses is made all the same, so that the refusal can be read with
    its numbers: ask `Plan.rejected` before acting on it.

    Args:
        resource: What is wanted.
        observed: What the world looks like, as far as it is known.

    Raises:
        InvalidInputError: The model's KV geometry cannot be had, a pod template sets what is not its own,
            a store cannot be made as it is asked for, or the resource has no engines of its own.
    """
    if resource.spec.attach is not None:
        raise InvalidInputError("", Problem("spec.attach", _NOT_OURS))
    store = plan_store(resource, observed.images)
    resource = with_store(resource, store)
    spec = resource.planned_spec
    geometry = resolve_geometry(spec, observed)
    backend = serve_tiers(spec, geometry, plan_backend(spec, geometry))
    tiers = plan_tiers(spec, geometry, backend)
    budget = plan_budget(spec, geometry, tiers, backend)
    ending = plan_ending(spec)
    engine = plan_engine(resource, backend, ending, observed)
    # What a running engine says corrects the picker and the status, never the engine's own pod: that would
    # restart it.
    most = most_tokens(tiers, geometry, spec.engine.ranks)
    corrected = correct_tiers(spec, tiers, geometry, observed.engine, most)
    router = plan_router(resource, geometry, corrected, observed.images)
    checks = run_checks(
        CheckInput(
            resource=resource,
            observed=observed,
            geometry=geometry,
            backend=backend,
            tiers=tiers,
            budget=budget,
            router=router,
        )
    )
    plan = Plan(
        resource=resource,
        geometry=geometry,
        tiers=corrected,
        most_tokens=most,
        budget=budget,
        ending=ending,
        engine=engine,
        weights=plan_weights(spec, geometry),
        doctor=plan_doctor(spec, tiers, budget, engine, observed),
        router=router,
        scaler=choose_scaler(spec, observed),
        store=store,
        pull_secrets=observed.images.secrets(spec),
        checks=checks,
        figures=plan_figures(spec, geometry, tiers, backend, budget),
        notes=(
            *geometry.notes,
            *backend.notes,
            *gpu_notes(spec.engine),
            *tier_notes(spec, geometry),
            *disk_weight_notes(spec, geometry),
            *clear_key_notes(spec),
            *streaming_notes(spec.engine, geometry, budget.memory),
            *adapter_notes(spec, geometry),
            *store_notes(store),
            *secret_notes(spec.tiers.remote),
            *monitoring_notes(spec),
            *prefix_notes(spec),
            *template_notes(spec),
        ),
    )
    refuse_templates(plan)
    return plan
