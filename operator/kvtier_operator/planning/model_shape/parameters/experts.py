"""How much of a model's weights are routed experts, which vLLM divides over all ranks of all engines.

Source: vLLM 0.32 and 0.33, layers/fused_moe/config.py, FusedMoEParallelConfig.make. What stands beside them,
attention, shared experts and embeddings, is on every data-parallel engine.
"""

from dataclasses import dataclass
from typing import Final

from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.parameters.parameter_bits import expert_bits

_COUNTS: Final = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
_WIDTHS: Final = ("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
_HIDDEN: Final = ("routed_expert_hidden_size", "moe_latent_size", "hidden_size")
_LAYERS: Final = ("num_hidden_layers", "num_layers")
_PREDICTORS: Final = ("num_nextn_predict_layers", "mtp_num_hidden_layers")
"""Of checkpoints that have them; those that `num_mtp_modules` counts are not published (MiniMax-M2)."""
_DENSE_FIRST: Final = ("first_k_dense_replace", "num_dense_layers")
_FREQUENCY: Final = "moe_layer_freq"
_PERIODS: Final = (
    *(_FREQUENCY, "interleave_moe_layer_step", "decoder_sparse_step"),
    *("expert_layer_period", "moe_layer_interval"),
)
_KINDS: Final = ("mlp_layer_types", "layers_block_type", "hybrid_override_pattern")
_OF_EXPERTS: Final = frozenset({"sparse", "moe", "E"})
_MOE: Final = "moe"
_ALWAYS: Final = (
    "mixtral",
    "deepseek_v",
    "gpt_oss",
    "minimax",
    "llama4",
    "kimi_k",
    "longcat",
    "jamba",
    "dbrx",
)
"""How model types begin whose files may leave the number of experts to the class."""
_WITHOUT_GATE: Final = "nemotron_h"
_GATED_MATRICES, _PLAIN_MATRICES = 3, 2
_SHARES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Experts:
    """The routed experts of a checkpoint.

    Attributes:
        bytes: Of their weights; 0 for a dense model.
        of_bytes: Of all weights of the checkpoint that they are counted in; None where not known.
    """

    bytes: int = 0
    of_bytes: int | None = None

    @classmethod
    def by_share(cls, share: float) -> "Experts":
        """Those that are this part of the weights, however these are quantised."""
        return cls(round(share * _SHARES), _SHARES)

    def within(self, weights_bytes: int) -> int | None:
        """Bytes of experts in weights of this size; None where they make no sense in them.

        In every published mixture of experts they are more than half.
        """
        found = self.bytes if self.of_bytes is None else self.bytes * weights_bytes // self.of_bytes
        return found if not found or weights_bytes < 2 * found <= 2 * weights_bytes else None


def experts_of(fields: ConfigFields, weights_bytes: int | None) -> Experts | None:
    """The routed experts that a config.json describes; None where it does not tell enough.

    Args:
        fields: The model's config.json.
        weights_bytes: Of the checkpoint; None if not known.
    """
    count = _number(fields, _COUNTS)
    if count is not None and count <= 1:
        return Experts()
    if count is None:
        return None if _may_have(fields) else Experts()
    width, hidden, layers = _number(fields, _WIDTHS), _number(fields, _HIDDEN), _layers(fields)
    bits = expert_bits(fields)
    if not (width and hidden and layers and bits):
        return None
    plain = fields.text("model_type").startswith(_WITHOUT_GATE)
    elements = layers * count * hidden * width * (_PLAIN_MATRICES if plain else _GATED_MATRICES)
    return Experts(int(elements * bits / 8), weights_bytes)


def _number(fields: ConfigFields, names: tuple[str, ...]) -> int | None:
    """First of these; None where none is there or it is not understood, such as a list of numbers."""
    value = fields.get(*names)
    return value if isinstance(value, int) and value >= 0 else None


def _may_have(fields: ConfigFields) -> bool:
    """Whether a file without a number of experts that is understood may be of a model that has some."""
    if fields.text("model_type").startswith(_ALWAYS) or _MOE in fields.text("model_type"):
        return True
    return any(fields.get(name) for name in fields.names if "expert" in name or _MOE in name)


def _layers(fields: ConfigFields) -> int | None:
    """Layers with experts, those that predict tokens further on among them."""
    layers = _number(fields, _LAYERS)
    if not layers:
        return None
    predictors = _number(fields, _PREDICTORS) or 0
    for name in _KINDS:
        kinds = fields.word(name) or fields.strings(name)
        if found := sum(kind in _OF_EXPERTS for kind in kinds):
            return found + predictors
    if (each := fields.get(_FREQUENCY)) and not isinstance(each, int):
        return sum(fields.numbers(_FREQUENCY)) + predictors
    dense = _number(fields, _DENSE_FIRST) or len(fields.numbers("mlp_only_layers"))
    return (layers - dense) // (_number(fields, _PERIODS) or 1) + predictors
