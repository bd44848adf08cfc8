"""What vLLM keeps of a token and of a prefix: from its own layers, blocks and groups."""

import types
from dataclasses import asdict, dataclass
from typing import Any, Final

from vllm.config import set_current_vllm_config
from vllm.distributed.kv_transfer.kv_connector.utils import get_current_attn_backends
from vllm.platforms import current_platform
from vllm.v1.attention.backends.utils import get_supported_kv_cache_layouts, resolve_kv_cache_layout
from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
from vllm.v1.kv_cache_interface import (
    AttentionSpec,
    ChunkedLocalAttentionSpec,
    FullAttentionSpec,
    MambaSpec,
    SlidingWindowSpec,
    UniformTypeKVCacheSpecs,
)
from vllm.v1.worker.gpu_model_runner import GPUModelRunner
from vllm.v1.worker.utils import select_common_block_size

try:
    from vllm.v1.core.kv_cache_planning import get_global_kv_cache_groups, get_kv_cache_configs
except ModuleNotFoundError:  # before 0.33
    from vllm.v1.core.kv_cache_utils import get_kv_cache_configs

    get_global_kv_cache_groups = None

# More than any card has: how much fits is not asked here.
_DEVICE_BYTES: Final = 1 << 50


@dataclass(frozen=True, slots=True)
class Group:
    """One of the engine's groups of layers.

    Attributes:
        kind: `full`, `sliding`, `chunked`, `state` or vLLM's own name of another one.
        layers: How many layers share its blocks.
        block_tokens: Tokens of one of its blocks.
        page_bytes: Bytes of one block, its layers together, on one rank.
        window_tokens: Of a sliding window or a chunk.
    """

    kind: str
    layers: int
    block_tokens: int
    page_bytes: int
    window_tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What vLLM says to one combination.

    Attributes:
        block_tokens: `cache_config.block_size` when the engine runs.
        bytes_per_token_per_rank: Of the groups that keep every token.
        bytes_per_token: The same in a tier, all ranks of one engine.
        bytes_per_prefix: Of the groups that keep a window or a state, all ranks.
        groups: The groups themselves.
        backends: vLLM's attention backends.
        layout: How the device's blocks lie.
    """

    block_tokens: int
    bytes_per_token_per_rank: float
    bytes_per_token: float
    bytes_per_prefix: int
    groups: tuple[Group, ...]
    backends: tuple[str, ...]
    layout: str

    def as_data(self) -> dict[str, Any]:
        """As it is written down."""
        return asdict(self)


def answer(config: Any) -> Answer | None:
    """Ask vLLM, in the order in which an engine does; None for a model without a KV cache."""
    register_all_kvcache_specs(config)
    current_platform.update_block_size_for_backend(config)
    config.validate_block_size()
    with set_current_vllm_config(config):
        runner = types.SimpleNamespace(vllm_config=config, shared_kv_cache_layers={})
        specs = GPUModelRunner.get_kv_cache_spec(runner)
        if not specs:
            return None
        backends = get_current_attn_backends(config)
        layouts = [layout.name for layout in get_supported_kv_cache_layouts(backends)]
        layout = resolve_kv_cache_layout(config, [layouts], list(specs.values()))
        grouped = [get_global_kv_cache_groups(config, [specs])] if get_global_kv_cache_groups else []
        (cache,) = get_kv_cache_configs(config, [specs], [_DEVICE_BYTES], *grouped)
    _kernels_take(config, cache.kv_cache_groups)
    ranks = config.parallel_config.tensor_parallel_size
    pool_bytes = cache.kv_cache_tensors[0].size // cache.num_blocks
    replicated = config.model_config.use_mla and ranks > 1 and cache.kv_tp_replicas == ranks
    groups = tuple(_group(group) for group in cache.kv_cache_groups)
    whole = [group for group in groups if group.kind == "full"] or [
        group for group in groups if group.kind != "state"
    ]
    per_token = sum(pool_bytes / group.block_tokens for group in whole)
    partial = [group for group in groups if group not in whole]
    per_prefix = sum(_blocks_of_a_prefix(group) * pool_bytes for group in partial)
    copies = 1 if replicated else ranks
    return Answer(
        block_tokens=config.cache_config.block_size,
        bytes_per_token_per_rank=per_token,
        bytes_per_token=per_token * copies,
        bytes_per_prefix=per_prefix * copies,
        groups=groups,
        backends=tuple(backend.get_name() for backend in backends),
        layout=layout.name,
    )


def _kernels_take(config: Any, groups: list[Any]) -> None:
    """Whether the backends' kernels work on blocks of these sizes, as a worker asks when it starts.

    Raises:
        ValueError: vLLM's, they do not.
    """
    layers = config.compilation_config.static_forward_context
    for group in groups:
        inner = getattr(group.kv_cache_spec, "kv_cache_specs", {})
        specs = {
            layers[name].get_attn_backend(): inner.get(name, group.kv_cache_spec)
            for name in group.layer_names
        }
        if all(isinstance(spec, AttentionSpec) for spec in specs.values()):
            select_common_block_size(group.kv_cache_spec.block_size, list(specs), list(specs.values()))


def _group(group: Any) -> Group:
    spec = group.kv_cache_spec
    if isinstance(spec, UniformTypeKVCacheSpecs):
        inner = list(spec.kv_cache_specs.values())
        page_bytes, first = sum(each.page_size_bytes for each in inner), inner[0]
    else:
        page_bytes, first = spec.page_size_bytes * len(group.layer_names), spec
    kind, window = _kind(first)
    return Group(kind, len(group.layer_names), spec.block_size, page_bytes, window)


def _kind(spec: Any) -> tuple[str, int]:
    if isinstance(spec, MambaSpec):
        return "state", 0
    if isinstance(spec, SlidingWindowSpec):
        return "sliding", spec.sliding_window
    if isinstance(spec, ChunkedLocalAttentionSpec):
        return "chunked", spec.attention_chunk_size
    if isinstance(spec, FullAttentionSpec):
        return "full", 0
    return type(spec).__name__, 0


def _blocks_of_a_prefix(group: Group) -> int:
    """Blocks that a hit at a prompt's end needs: a state, or what a window reaches back to."""
    return -(-(group.window_tokens - 1) // group.block_tokens) if group.window_tokens else 1
