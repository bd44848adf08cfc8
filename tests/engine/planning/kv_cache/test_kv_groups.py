"""The planner's KV cache groups, states and raised blocks against vLLM's own, for layers of every kind."""

import logging
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvtier_operator.planning.kv_cache.blocks import KVGroups, LayerPages, get_kv_cache_groups
from kvtier_operator.planning.model_shape.shape import LayerKind, State

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]
TOKENS = 16

KINDS = st.sampled_from([LayerKind.FULL, LayerKind.SLIDING, LayerKind.MLA, LayerKind.STATE])


@st.composite
def models(draw: st.DrawFn) -> list[LayerPages]:
    """Layers of up to four shapes, whose pages are multiples of 64 bytes a token, as heads are."""
    shapes = draw(
        st.lists(
            st.tuples(KINDS, st.integers(1, 40), st.integers(1, 12), st.sampled_from([128, 1024])),
            min_size=1,
            max_size=4,
            unique_by=lambda shape: (shape[0], shape[2], shape[3] if shape[0] is LayerKind.SLIDING else 0),
        )
    )
    attention = [width for kind, _, width, _ in shapes if kind is not LayerKind.STATE]
    return [
        LayerPages(
            kind,
            layers,
            TOKENS,
            # a state is as large as the attention layers' pages at most: their blocks have been raised
            (max(attention, default=width) if kind is LayerKind.STATE else width) * 64 * TOKENS,
            window if kind is LayerKind.SLIDING else 0,
        )
        for kind, layers, width, window in _one_state(shapes)
    ]


def _one_state(shapes: Sequence[Any]) -> list[Any]:
    states = [shape for shape in shapes if shape[0] is LayerKind.STATE]
    return [shape for shape in shapes if shape[0] is not LayerKind.STATE] + states[:1]


def _spec(layer: LayerPages) -> Any:  # noqa: ANN401 - vLLM publishes no types
    import torch  # noqa: PLC0415 - takes seconds
    from vllm.v1 import kv_cache_interface as specs  # noqa: PLC0415 - as above

    width = layer.page_bytes // layer.block_tokens // 64
    if layer.kind is LayerKind.STATE:
        shapes = ((layer.page_bytes // 4,),)
        return specs.MambaSpec(block_size=TOKENS, shapes=shapes, dtypes=(torch.float32,))
    if layer.kind is LayerKind.MLA:
        return specs.MLAAttentionSpec(
            block_size=TOKENS, num_kv_heads=1, head_size=32 * width, dtype=torch.bfloat16
        )
    common = {"block_size": TOKENS, "num_kv_heads": width, "head_size": 16, "dtype": torch.bfloat16}
    if layer.kind is LayerKind.SLIDING:
        return specs.SlidingWindowSpec(**common, sliding_window=layer.window_tokens)
    return specs.FullAttentionSpec(**common)


def in_vllm(layers: Sequence[LayerPages], *, block_outermost: bool) -> tuple[int, list[Any]] | None:
    """Bytes of a block, and the groups; None where vLLM does not start."""
    from vllm.v1.core import kv_cache_utils as utils  # noqa: PLC0415 - as above
    from vllm.v1.kv_cache_layout import KVCacheLayout  # noqa: PLC0415 - as above

    try:  # where 0.33 has it
        from vllm.v1.core import kv_cache_planning as planning  # noqa: PLC0415 - as above
    except ImportError:
        planning = utils
    layout = KVCacheLayout.BLHNC if block_outermost else KVCacheLayout.LBHNC
    config = SimpleNamespace(
        scheduler_config=SimpleNamespace(disable_hybrid_kv_cache_manager=False),
        cache_config=SimpleNamespace(get_resolved_kv_cache_layout=lambda: layout),
        attention_config=SimpleNamespace(hisparse_config=None),
        speculative_config=None,
        kv_transfer_config=None,
        model_config=SimpleNamespace(),
    )
    named = {
        f"model.layers.{number}.{index}": _spec(layer)
        for number, layer in enumerate(layers)
        for index in range(layer.layers)
    }
    logging.disable(logging.CRITICAL)
    try:
        groups = planning.get_kv_cache_groups(config, named)
    except (NotImplementedError, StopIteration):
        return None
    finally:
        logging.disable(logging.NOTSET)
    if sum(len(group.layer_names) for group in groups) < len(named):
        return None  # layers that no group has: the worker finds no cache for them
    return planning._get_kv_cache_bytes_per_block(groups, layout), groups


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    from vllm.v1.core import single_type_kv_cache_manager as managers  # noqa: PLC0415 - as above

    managers.register_all_kvcache_specs(SimpleNamespace())


def blocks(planned: KVGroups) -> list[int]:
    """Tokens of a block of every group."""
    return sorted(group.block_tokens for group in planned.groups for _ in range(group.groups))


@pytest.mark.parametrize("block_outermost", [True, False])
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(layers=models())
def test_groups(block_outermost: bool, layers: list[LayerPages]) -> None:
    planned = get_kv_cache_groups(layers, block_outermost=block_outermost)
    real = in_vllm(layers, block_outermost=block_outermost)
    assert (planned is None) == (real is None)
    if planned is not None and real is not None:
        block_bytes, groups = real
        assert planned.block_bytes == block_bytes
        assert blocks(planned) == sorted(group.kv_cache_spec.block_size for group in groups)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("draft_tokens", [0, 3])
def test_shapes_of_states(ranks: int, draft_tokens: int) -> None:
    from vllm.model_executor.layers.mamba import mamba_utils  # noqa: PLC0415 - as above

    shapes = mamba_utils.MambaStateShapeCalculator

    def elements(parts: Sequence[Sequence[int]]) -> tuple[int, ...]:
        sizes = []
        for part in parts:
            size = 1
            for side in part:
                size *= side
            sizes.append(size)
        return tuple(sizes)

    mamba2 = State(
        channels=2048, group_channels=2 * 128, groups=8, tokens=3, recurrent_elements=32 * 64 * 128
    )
    gated = State(channels=2 * 128 * 16 + 128 * 32, tokens=3, recurrent_elements=32 * 128 * 128)
    kda = State(channels=3 * 96 * 128, tokens=3, recurrent_elements=96 * 128 * 128, recurrent_bytes=4)
    found = {
        "mamba2": (mamba2, shapes.mamba2_state_shape(ranks, 2048, 8, 32, 64, 128, 4, draft_tokens)),
        "gated": (gated, shapes.gated_delta_net_state_shape(ranks, 16, 32, 128, 128, 4, draft_tokens)),
        "kda": (kda, shapes.kda_state_shape(ranks, 96, 128, num_spec=draft_tokens)),
    }
    for name, (state, real) in found.items():
        convolution, recurrent = elements(real)
        expected = convolution * 2 + recurrent * (state.recurrent_bytes or 2)
        assert state.rank_bytes(ranks, 2, draft_tokens=draft_tokens) == expected, name
