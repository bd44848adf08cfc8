"""The engine: vLLM's arguments and environment, from the resource and its backend."""

import json
from collections.abc import Mapping
from typing import Any

from kvtier_operator.api.resource import KVCacheTier, Spec
from kvtier_operator.api.spec.engine import Device, EngineSpec, KVCacheDtype
from kvtier_operator.api.spec.model import ModelSpec
from kvtier_operator.api.spec.router import RouterSpec
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.backends.engine_image import engine_image
from kvtier_operator.planning.base.container_parts import EnginePlan
from kvtier_operator.planning.base.ending import Ending
from kvtier_operator.planning.base.names import Names
from kvtier_operator.planning.base.tier_plan import BackendPlan
from kvtier_operator.planning.base.tracing import otel_variables
from kvtier_operator.planning.model_shape.block_tokens import engine_block_tokens
from kvtier_operator.planning.observed import Machine, Observed
from kvtier_operator.planning.pod.kept import engine_folders, kept_env, middleware_args, prefix_files
from kvtier_operator.planning.tiers.capacity import CPU_DEVICE_KV_CACHE_BYTES
from kvtier_operator.planning.weights.device_weights import adapter_args
from kvtier_operator.planning.weights.pod_weights import SourceKind, model_source
from kvtier_scorer.config.contract import EVENTS_PORT, REPLAY_PORT


def plan_engine(
    resource: KVCacheTier, backend: BackendPlan, ending: Ending, observed: Observed
) -> EnginePlan:
    """The engine as a container or a process.

    Args:
        resource: What is wanted.
        backend: What the backend needs.
        ending: How its pod ends.
        observed: The machine of a local run, and where images come from.

    Returns:
        Image, all vLLM arguments (the model first), environment, files, volumes and sidecars.
    """
    engine, machine = resource.spec.engine, observed.machine
    return EnginePlan(
        image=engine_image(resource.spec, observed.images),
        args=_args(resource, backend, ending, machine),
        env=_env(resource, backend, machine),
        env_from_resource=_env_from_resource(resource, backend),
        files=backend.files,
        mounts=backend.mounts,
        secrets=backend.secrets,
        folders=engine_folders(resource),
        prefixes=prefix_files(resource.spec),
        sidecars=backend.sidecars,
        port=engine.port,
        scratch_dirs=backend.scratch_dirs,
        payload=observed.images.connector() if traits_of(resource.spec.backend).in_payload else None,
    )


def _args(
    resource: KVCacheTier, backend: BackendPlan, ending: Ending, machine: Machine | None
) -> tuple[str, ...]:
    """Source: vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py, 0.32 and 0.33."""
    model, engine = resource.spec.model, resource.spec.engine
    return (
        _model(model, machine),
        *("--served-model-name", *model.names),
        *adapter_args(resource.spec),
        *_option("--revision", model.revision),
        *("--port", str(engine.port)),
        *("--tensor-parallel-size", str(engine.tensor_parallel_size)),
        *("--data-parallel-size", str(engine.data_parallel_size)),
        *_option("--max-model-len", engine.max_model_len),
        *_option("--block-size", _block_tokens(engine)),
        "--enable-prefix-caching",
        *_device_cache_args(engine),
        *backend.args,
        *_events_args(resource.spec.router, machine),
        *_tracing_args(resource.spec, machine),
        *middleware_args(resource.spec),
        *_ending_args(engine, ending, machine),
        *engine.extra_args.words,
    )


def _model(model: ModelSpec, machine: Machine | None) -> str:
    """What vLLM loads: in a pod the source's folder, in a local run what this machine has."""
    source = model_source(model)
    if source is None or (machine is not None and source.kind is not SourceKind.NODE):
        return model.name
    return source.folder if machine is None else source.place


def _events_args(router: RouterSpec, machine: Machine | None) -> tuple[str, ...]:
    """Nothing in a local run: engines of one machine would publish at one address, and nobody follows them.

    Source: vllm/config/kv_events.py (KVEventsConfig).
    """
    if not router.kv_events or machine is not None:
        return ()
    config = {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": f"tcp://*:{EVENTS_PORT}",
        "replay_endpoint": f"tcp://*:{REPLAY_PORT}",
    }
    return "--kv-events-config", json.dumps(config)


def _tracing_args(spec: Spec, machine: Machine | None) -> tuple[str, ...]:
    """Nothing in a local run, from where a cluster's collector is not reached."""
    tracing = spec.observability.tracing
    return () if tracing is None or machine is not None else ("--otlp-traces-endpoint", tracing.endpoint)


def _ending_args(engine: EngineSpec, ending: Ending, machine: Machine | None) -> tuple[str, ...]:
    """At SIGTERM vLLM aborts what is under way, by default; who ends a local run means to.

    Of several API servers, by default one for each data-parallel engine, each lets go of the engines at once
    and leaves its streams hanging (seen with 0.33; vllm/v1/engine/core_client.py, MPClient.shutdown). One
    alone has the engines drain first.
    """
    if machine is not None:
        return ()
    servers = ("--api-server-count", "1") if engine.data_parallel_size > 1 else ()
    return (*servers, "--shutdown-timeout", str(ending.drain_s))


def _option(name: str, value: object | None) -> tuple[str, ...]:
    return () if value is None else (name, str(value))


def _block_tokens(engine: EngineSpec) -> int | None:
    """On a GPU vLLM leaves out each attention backend that does not take a block that it is given.

    On a CPU 0.32 puts its default back whenever a configuration is checked again, also where it has raised
    the block for a hybrid model by then (platforms/cpu.py, check_and_update_config).
    """
    return engine_block_tokens(engine) if engine.device is Device.CPU else engine.block_size


def _device_cache_args(engine: EngineSpec) -> tuple[str, ...]:
    """On device cpu --kv-cache-memory-bytes too: VLLM_CPU_KVCACHE_SPACE takes whole GiB only.

    Source: vllm/platforms/cpu.py (`Legacy setting`) and vllm/v1/worker/cpu_worker.py; with the argument the
    worker also skips its check against a share of all memory. Both are for one rank.
    """
    dtype = None if engine.kv_cache_dtype is KVCacheDtype.AUTO else engine.kv_cache_dtype
    size = engine.kv_cache_memory.bytes if engine.kv_cache_memory else None
    if size is None and engine.device is Device.CPU:
        size = CPU_DEVICE_KV_CACHE_BYTES
    return (
        *_option("--gpu-memory-utilization", engine.gpu_memory_utilization),
        *_option("--kv-cache-memory-bytes", size),
        *_option("--kv-cache-dtype", dtype),
    )


def _env(resource: KVCacheTier, backend: BackendPlan, machine: Machine | None) -> Mapping[str, str]:
    spec, engine = resource.spec, resource.spec.engine
    # The same block hashes in every process, pod and start: vLLM and LMCache derive them from this seed.
    env = {"PYTHONHASHSEED": "0"}
    if engine.device is Device.CPU:
        cores = machine.cores if machine else ()
        env["VLLM_CPU_OMP_THREADS_BIND"] = _cores(spec, cores)
        env |= _threads(spec, len(cores))
    if spec.observability.tracing and machine is None:
        names = Names.of_resource(resource)
        env |= otel_variables(spec.observability.tracing, names, names.engine)
    own = {variable.name: variable.value or "" for variable in engine.env if variable.value_from is None}
    return {**env, **backend.env, **kept_env(spec), **own}


def _cores(spec: Spec, cores: tuple[int, ...]) -> str:
    """The cores of each rank (vllm/utils/ompmultiprocessing.py), `0,1|2,3` for two.

    An engine that has a machine to itself gets all of its cores: threads that are not bound share one now and
    then, and a prefill took up to twice as long. In a pod, and beside other engines, nothing is bound: vLLM's
    own default binds each rank to the cores of a NUMA node, those of other engines included.
    """
    ranks, engine = spec.engine.tensor_parallel_size, spec.engine
    if spec.least_replicas != 1 or engine.data_parallel_size != 1 or len(cores) < ranks:
        return "nobind"
    share = len(cores) // ranks
    parts = [cores[rank * share : (rank + 1) * share] for rank in range(ranks)]
    return "|".join(",".join(map(str, part)) for part in parts)


def _threads(spec: Spec, cores: int) -> Mapping[str, str]:
    """A share of the machine's cores for each rank of several engines; nothing where they are not known.

    By default each would compute with as many threads as there are cores, and threads of one matrix product
    wait for each other: two products at once on two cores took 1.6 to 2.3 times as long.
    """
    if spec.least_replicas < 2 or not cores:  # noqa: PLR2004 - several
        return {}
    engine = spec.engine
    ranks = spec.least_replicas * engine.ranks
    return {"OMP_NUM_THREADS": str(max(1, cores // ranks))}


def _env_from_resource(resource: KVCacheTier, backend: BackendPlan) -> tuple[Mapping[str, Any], ...]:
    passed = [*backend.env_from]
    token = resource.spec.model.token_secret_ref
    if token is not None:
        reference = {"name": token.name, "key": token.key}
        passed.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}})
    passed += [
        {"name": variable.name, "valueFrom": variable.value_from}
        for variable in resource.spec.engine.env
        if variable.value_from is not None
    ]
    return tuple(passed)
