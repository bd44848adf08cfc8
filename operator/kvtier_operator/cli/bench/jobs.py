"""The Jobs that `kvtier bench job` is asked for, and why one cannot be made."""

from dataclasses import dataclass
from typing import Any

from kvtier_connector.bench.choices import BESIDE, COMPARED_PARTS, DEMO, KVTIER, SHAPES, SIDES, shape_of
from kvtier_operator.api.resource import KVCacheTier, Spec
from kvtier_operator.api.spec.engine import Device
from kvtier_operator.cli.inputs.load import load, naming
from kvtier_operator.cli.inputs.observe import observe
from kvtier_operator.cli.inputs.plans import refusals
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.backends import any_backend_that, traits_of
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.objects.bench_job import (
    BenchRun,
    as_vllm,
    bench_job,
    in_namespace,
    with_memory_for,
    without_download,
    without_prefixes,
    without_shared_disk,
    without_store,
)
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchJobOptions:
    """Options of `kvtier bench job` by their names; None or empty where one was left out."""

    paths: tuple[str, ...]
    model_config: str | None
    hub: bool
    images: ImageSource
    namespace: str | None
    only: tuple[str, ...]
    shape: str | None
    sides: tuple[str, ...]
    turns: int
    deadline_s: int


@dataclass(frozen=True, slots=True)
class BenchJobs:
    """The Jobs of all resources."""

    jobs: tuple[dict[str, Any], ...]  # one Job for each resource
    remarks: tuple[str, ...]  # what the Jobs leave out, a line each
    refusals: tuple[str, ...]  # checks that reject a plan, a line each: then there is nothing to apply


def jobs_of(options: BenchJobOptions) -> BenchJobs:
    """A Job for each resource."""
    jobs, remarks, refused = [], list[str](), list[str]()
    loaded = load(options.paths)
    for source, read in loaded.resources:
        resource, disk_left_out = without_shared_disk(in_namespace(read, options.namespace))
        resource, store_left_out = without_store(without_prefixes(resource))
        run = BenchRun(
            shape=_shape(source, resource.spec, options.shape),
            parts=options.only or COMPARED_PARTS,
            sides=_sides(source, resource.spec, options.sides),
            turns=options.turns,
            deadline_s=options.deadline_s,
        )
        with naming(source):
            observed = observe(
                resource,
                model_config=options.model_config,
                config_maps=loaded.config_maps,
                hub=options.hub,
                images=options.images,
            )
            plan = _plan(resource, run, observed)
        refused += refusals(source, plan)
        remarks += [f"{source}: {line}" for line in (disk_left_out, store_left_out) if line]
        jobs.append(bench_job(plan, run))
    return BenchJobs(tuple(jobs), tuple(remarks), tuple(refused))


def _plan(resource: KVCacheTier, run: BenchRun, observed: Observed) -> Plan:
    plan = without_download(make_plan(resource, observed))
    if not BESIDE & {*run.sides}:
        return plan
    return with_memory_for(plan, make_plan(as_vllm(resource), observed))


def _shape(source: str, spec: Spec, wanted: str | None) -> str:
    """The shape to draw, which its backend and its GPUs have to be able to serve."""
    if traits_of(spec.backend).bench_side != KVTIER:
        measured = any_backend_that(lambda traits: traits.bench_side == KVTIER)
        raise _problem(
            source,
            "spec.backend",
            f"{spec.backend}: the bench measures {measured}'s connector beside vLLM's own and none; "
            f"give a resource with backend {measured}, such as this one with that changed",
        )
    # without a model the planner refuses, and says why
    any_shape = spec.engine.device is Device.CPU or spec.served_model is None
    default = DEMO if any_shape else shape_of(spec.model.name)
    shape = wanted or default
    if shape is None:
        known = ", ".join(SHAPES)
        raise _problem(
            source,
            "spec.model.name",
            f"the bench has no sizes of {spec.model.name}; choose the nearest with --shape: {known}",
        )
    heads, ranks = SHAPES[shape].config["num_attention_heads"], spec.engine.tensor_parallel_size
    if heads % ranks:
        raise _problem(
            source,
            "spec.engine.tensorParallelSize",
            f"{ranks} ranks cannot share the {heads} heads of {shape}; choose another --shape",
        )
    return shape


def _sides(source: str, spec: Spec, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """What is compared; nothing on a CPU, where kvtier is measured beside no tier."""
    if spec.engine.device is not Device.CPU:
        return wanted or SIDES
    if wanted:
        raise _problem(
            source,
            "spec.engine.device",
            "cpu: --sides compares engines on a GPU; on a CPU kvtier is measured beside no tier",
        )
    return ()


def _problem(source: str, field: str, message: str) -> InvalidInputError:
    return InvalidInputError(source, Problem(field, message))
