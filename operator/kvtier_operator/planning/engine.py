"""The engine: vLLM's arguments and environment, from the resource and its backend."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_operator.api.engine import Device, EngineSpec, KVCacheDtype
from kvtier_operator.api.resource import Backend, KVCacheTier
from kvtier_operator.planning.geometry import Geometry
from kvtier_operator.planning.plan import BackendPlan, Budget, EnginePlan

DEFAULT_CPU_KV_CACHE_BYTES: Final = 4 << 30
"""The device cache on device cpu, per rank, where the resource names none (its field says so)."""


def plan_engine(
    resource: KVCacheTier, geometry: Geometry, backend: BackendPlan, budget: Budget
) -> EnginePlan:
    """The engine as a container or a process.

    Args:
        resource: What is wanted.
        geometry: KV geometry of the model.
        backend: What the backend needs.
        budget: The pod's resources.

    Returns:
        Image, all vLLM arguments (the model first), environment, files, volumes and sidecars.
    """
    del geometry, budget
    spec = resource.spec
    return EnginePlan(
        image=spec.engine.image or backend.image or _default_image(spec.backend, spec.engine.device),
        args=_args(resource, backend),
        env=_env(resource, backend),
        env_from_resource=_env_from_resource(resource),
        files=backend.files,
        mounts=backend.mounts,
        sidecars=backend.sidecars,
        port=spec.engine.port,
    )


def _default_image(backend: Backend, device: Device) -> str:
    del backend, device
    return "vllm/vllm-openai:v0.33.0"


def _args(resource: KVCacheTier, backend: BackendPlan) -> tuple[str, ...]:
    model, engine = resource.spec.model, resource.spec.engine
    args = [
        model.name,
        "--served-model-name",
        model.name,
        *_option("--revision", model.revision),
        "--port",
        str(engine.port),
        "--tensor-parallel-size",
        str(engine.tensor_parallel_size),
        "--data-parallel-size",
        str(engine.data_parallel_size),
        *_option("--max-model-len", engine.max_model_len),
        "--block-size",
        str(engine.block_size),
        "--enable-prefix-caching",
        *_device_cache_args(engine),
        *backend.args,
        *engine.extra_args,
    ]
    return tuple(args)


def _option(name: str, value: object | None) -> tuple[str, ...]:
    return () if value is None else (name, str(value))


def _device_cache_args(engine: EngineSpec) -> tuple[str, ...]:
    dtype = None if engine.kv_cache_dtype is KVCacheDtype.AUTO else engine.kv_cache_dtype
    size = engine.kv_cache_memory.bytes if engine.kv_cache_memory else None
    if size is None and engine.device is Device.CPU:
        size = DEFAULT_CPU_KV_CACHE_BYTES
    return (
        *_option("--gpu-memory-utilization", engine.gpu_memory_utilization),
        *_option("--kv-cache-memory-bytes", size),
        *_option("--kv-cache-dtype", dtype),
    )


def _env(resource: KVCacheTier, backend: BackendPlan) -> Mapping[str, str]:
    given = {
        variable.name: variable.value or ""
        for variable in resource.spec.engine.env
        if not variable.value_from
    }
    return {"PYTHONHASHSEED": "0", **backend.env, **given}


def _env_from_resource(resource: KVCacheTier) -> tuple[Mapping[str, Any], ...]:
    passed: list[Mapping[str, Any]] = [
        {"name": variable.name, "valueFrom": variable.value_from}
        for variable in resource.spec.engine.env
        if variable.value_from
    ]
    return tuple(passed)
