"""Fields that a configuration class makes others of while it is made: to change them later changes nothing.

Overrides come later (vLLM, config/model.py, ModelConfig.__post_init__).
"""

from typing import Any, Final

from kvtier_operator.generate.engine_data.config_classes import config_of

_PATTERNS: Final = (
    *("sliding_window_pattern", "global_attn_every_n_layers", "full_attention_interval"),
    *("layer_group_size", "attn_layer_period", "attn_layer_offset", "no_rope_layer_interval"),
)
_HEADS: Final = 16
_WIDTHS: Final = (1152, 2304)


def read_once(cls: Any) -> list[str]:  # noqa: ANN401 - of a package without types
    """What decides `layer_types` when a configuration of this class is made, and never after."""
    return [name for name in _PATTERNS if _is_read_once(cls, name)]


def _is_read_once(cls: Any, name: str) -> bool:  # noqa: ANN401 - as above
    two, three = (config_of(cls, **{name: layers}) for layers in (2, 3))
    kinds, others = getattr(two, "layer_types", None), getattr(three, "layer_types", None)
    if not kinds or kinds == others:
        return False
    setattr(two, name, 3)
    return bool(two.layer_types == kinds)


def works_out_head_dim(cls: Any) -> bool:  # noqa: ANN401 - as above
    """Whether the class divides its width by its heads where a file has no `head_dim`."""
    made = [config_of(cls, hidden_size=w, num_attention_heads=_HEADS, head_dim=None) for w in _WIDTHS]
    return [getattr(config, "head_dim", None) for config in made] == [width // _HEADS for width in _WIDTHS]
