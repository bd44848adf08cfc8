"""Whether the KV cache lies in memory as it is planned, where an environment variable says how."""

from typing import Final

from kvtier_operator.api.spec.engine import Device
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.kv_cache.split import packs_keys_and_values
from kvtier_operator.planning.model_shape.geometry import LayerKind
from kvtier_operator.planning.verdict import CheckResult, Verdicts

_VARIABLE: Final = "VLLM_KV_CACHE_LAYOUT"
_VERDICTS: Final = Verdicts("cache-layout", f"spec.engine.env[{_VARIABLE}]")
_BLOCKS_FIRST: Final = frozenset({"BLHNC", "BLNHC", "BHLNC"})
"""The blocks' layers lie beside each other, as kvtier's connector asks."""
_IN_PIECES: Final = frozenset({"BHLNC", "LHBNC"})
"""A block of one layer lies in several places."""
_OF_CPU: Final = frozenset({"LBHNC", "HND"})


def cache_layout(given: CheckInput) -> CheckResult:
    """The variable goes before what a connector asks (vLLM, v1/attention/backends/utils.py)."""
    variable = next((each for each in given.spec.engine.env if each.name == _VARIABLE), None)
    if variable is None:
        return _VERDICTS.passed("the cache lies as the backend asks", field="spec.engine.env")
    layout = variable.value or "(not known)"
    on_cuda = given.spec.engine.device is Device.CUDA
    planned = on_cuda and given.traits.blocks_outermost
    planned = planned and not packs_keys_and_values(given.geometry.cache_dtype)
    unlike, as_planned = _unlike_pages(given), (layout in _BLOCKS_FIRST) is planned
    in_pieces = layout in _IN_PIECES and (unlike or given.geometry.keeps_states)
    if (unlike and not as_planned) or in_pieces or not (on_cuda or layout in _OF_CPU):
        return _VERDICTS.reject(
            "LayoutNotPlanned",
            f"{_VARIABLE} {layout} goes before the layout that backend {given.spec.backend} is planned with: "
            "with this model vLLM does not start, or takes blocks of another size; remove it",
        )
    if not as_planned and planned:
        return _VERDICTS.warn(
            "LayoutCopiesSlowly",
            f"{_VARIABLE} {layout} keeps the layers of a block apart, so each is copied by itself, slower: "
            "remove it for one copy a block",
            by_itself="plans the same sizes and passes it on",
        )
    return _VERDICTS.passed(f"{_VARIABLE} {layout} changes no size")


def _unlike_pages(given: CheckInput) -> bool:
    """Whether layers keep unlike bytes of a token, so that the layout decides how they share blocks."""
    groups = [group for group in given.geometry.groups if group.kind is not LayerKind.STATE]
    pages = {(group.kv_heads, group.key_dim, group.value_dim, group.own_dtype) for group in groups}
    return len(pages) > 1 or any(group.index_bytes for group in groups)
