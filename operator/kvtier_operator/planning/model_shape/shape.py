"""The shape of a model, before any engine splits it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kvtier_operator.api.spec.command_line import CommandLine
from kvtier_operator.api.spec.engine import KVCacheDtype
from kvtier_operator.planning.units import ceil_div


class Recurrence(StrEnum):
    """What decides the dtype of a recurrent state, before the model's own and the convolution's."""

    SSM = "--mamba-ssm-cache-dtype"
    KDA = "the same, of delta attention, which vLLM keeps in no float16"
    OWN = "no argument of its own"


_SHARES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What computes one token."""

    parameters: int  # how many
    how: str  # where that is from, numbers filled in


@dataclass(frozen=True, slots=True)
class Experts:
    """The routed experts of a checkpoint."""

    bytes: int = 0  # of their weights; 0 for a dense model
    # of all weights of the checkpoint that they are counted in; None where not known
    of_bytes: int | None = None

    @classmethod
    def by_share(cls, share: float) -> "Experts":
        """Those that are this part of the weights, however these are quantised."""
        return cls(round(share * _SHARES), _SHARES)

    def within(self, weights_bytes: int) -> int | None:
        """Bytes of experts in weights of this size; None where they make no sense in them.

        In every published mixture of experts they are more than half.
        """
        experts_bytes = self.bytes if self.of_bytes is None else self.bytes * weights_bytes // self.of_bytes
        return (
            experts_bytes
            if not experts_bytes or weights_bytes < 2 * experts_bytes <= 2 * weights_bytes
            else None
        )


class WidthOf(StrEnum):
    """What a width belongs to, where an argument decides whether ranks share it out."""

    LAYERS = "every layer"
    EXPERTS = "experts, which --enable-expert-parallel leaves whole"
    TOWER = "what encodes images, which --mm-encoder-tp-mode data leaves whole"


@dataclass(frozen=True, slots=True)
class Width:
    """A width of a model's matrices that ranks share out evenly."""

    field: str  # of config.json
    elements: int
    multiple_of: int = 1  # what each rank's part is to be a multiple of
    of: WidthOf = WidthOf.LAYERS

    def is_cut_by(self, ranks: int) -> bool:
        """Whether so many ranks get no whole parts of it."""
        return ranks > 1 and bool(self.elements % (ranks * self.multiple_of))


@dataclass(frozen=True, slots=True)
class State:
    """One layer's state: the inputs of a short convolution, and a recurrent state.

    The shapes are those of vLLM's MambaStateShapeCalculator (model_executor/layers/mamba/mamba_utils.py).
    """

    channels: int = 0  # of the convolution, all ranks together, without those of `groups`
    group_channels: int = 0  # of each group
    groups: int = 0  # groups that heads share; as many as ranks where ranks do not divide them
    tokens: int = 0  # inputs that the convolution keeps, the kernel's size less one
    draft_tokens: bool = True  # whether it keeps one more for each speculative token
    recurrent_elements: int = 0  # all ranks together
    recurrent_bytes: int = 0  # bytes of one of them; 0 for those of the convolution's dtype
    heads: tuple[int, ...] = ()  # numbers of heads that the ranks must divide
    recurrence: Recurrence = Recurrence.SSM  # what goes before that

    def rank_bytes(
        self, ranks: int, dtype_bytes: int, recurrent_bytes: int = 0, draft_tokens: int = 0
    ) -> int:
        """Bytes of one layer's state on one rank.

        Args:
            ranks: That share the layer.
            dtype_bytes: Bytes of one element of the convolution.
            recurrent_bytes: Bytes of one recurrent element where the engine is told; 0 otherwise.
            draft_tokens: Speculative tokens of one step.
        """
        groups = self.groups if not self.groups % ranks else ranks
        channels = ceil_div(self.channels + groups * self.group_channels, ranks)
        tokens = self.tokens + (draft_tokens if self.draft_tokens else 0)
        recurrent = ceil_div(self.recurrent_elements, ranks)
        configured_bytes = 0 if self.recurrence is Recurrence.OWN else recurrent_bytes
        return channels * tokens * dtype_bytes + recurrent * (
            configured_bytes or self.recurrent_bytes or dtype_bytes
        )


CATALOGUE: Final = "catalogue"
"""How the source of a shape begins that kvtier has itself."""


class LayerKind(StrEnum):
    """How a layer keeps its past."""

    FULL = "full"
    SLIDING = "sliding"
    MLA = "mla"
    STATE = "state"

    @property
    def keeps_tokens(self) -> bool:
        """Whether it keeps every token."""
        return self in {LayerKind.FULL, LayerKind.MLA}


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """Layers of the same shape."""

    kind: LayerKind  # how they keep their past
    layers: int  # how many
    kv_heads: int  # key/value heads of one layer; 1 for MLA, 0 for a state
    key_dim: int  # size of one key head; latent plus rotary key for MLA
    value_dim: int  # size of one value head; 0 for MLA (the latent is both)
    window_tokens: int = 0  # window of sliding layers; 0 otherwise
    # fixed state of one layer and sequence; None where tokens are kept, or where it is not known
    state: State | None = None
    # further bytes that one layer keeps of each token whatever the cache's dtype, such as the keys of a
    # sparse-attention indexer
    index_bytes: int = 0
    # whether MLA attends to few tokens that an indexer chose, here or in an earlier layer
    sparse: bool = False
    draft: bool = False  # whether they belong to the model that drafts tokens for this one
    own_dtype: bool = False  # whether they are kept in the model's own dtype whatever the cache's is

    @property
    def sparse_heads(self) -> bool:
        """Whether they keep keys and values, and attend to few tokens that an indexer chose."""
        return self.index_bytes > 0 and self.kind is not LayerKind.MLA

    @property
    def elements_per_token(self) -> int:
        """Cache elements that one layer keeps of one token, all heads, before any split over ranks."""
        return self.kv_heads * (self.key_dim + self.value_dim)


@dataclass(frozen=True, slots=True)
class ModelShape:
    """A model as its publisher describes it."""

    source: str  # where the shape came from, for the report
    groups: tuple[LayerGroup, ...]  # layers of the same shape; empty where only `bytes_per_token` is known
    dtype_bytes: int = 2  # bytes of one element of the model's own dtype
    # what the checkpoint says its cache is kept in, where the resource does not say
    cache_dtype: KVCacheDtype = KVCacheDtype.AUTO
    has_cache_scales: bool = False  # whether the checkpoint brings scales of an fp8 cache
    computes_in: str = ""  # the dtype that it is published in, such as bfloat16; empty if not known
    attention_heads: int | None = None  # query heads of one layer; None if not known
    max_position_tokens: int | None = None  # longest sequence; None if not known
    most_position_tokens: int | None = None  # longest sequence that vLLM takes when asked; None if not known
    weights_bytes: int | None = None  # size of the weights; None if not known
    experts: Experts | None = None  # the routed experts among the weights; None where nothing tells them
    expert_count: int | None = None  # routed experts of one layer; None where nothing tells
    widths: tuple[Width, ...] = ()  # what ranks share out beside heads and states, as far as known
    model_type: str = ""  # of the language model; empty if not known
    quantization: str = ""  # method of a quantised checkpoint, spelt with hyphens; empty if not known
    mixed_by_modelopt: bool = False  # whether vLLM before 0.33 does not load ModelOpt's mix
    vocabulary: int | None = None  # tokens of it; None if not known
    own_code: bool = False  # whether its configuration is code beside the weights, which neither library has
    # a state that vLLM makes room for in a block, though no layer keeps one
    state_of_class: State | None = None
    is_quantised: bool | None = None  # whether the checkpoint is; None if not known
    bytes_per_token: int | None = None  # bytes of one token, where the resource gives nothing finer
    chunked_attention: bool = False  # whether some layers attend within chunks only (Llama 4)
    draft_tokens: int = 0  # speculative tokens of one step; 0 where none are drafted
    # what a block is a multiple of where states are exported inside a prefill
    state_alignment_tokens: int = 1
    fp8_by_gpu: bool = False  # whether vLLM takes fp8 for `auto` on some GPUs
    kv_heads_replicated: bool = True  # whether more ranks than KV heads have copies of them
    images_both_ways: bool = False  # whether an image's tokens attend to one another in both directions
    # whether attention stands beside a state in one layer, so that no layer's kind says attention
    attention_beside_states: bool = False
    has_sinks: bool = False  # whether attention has learned logits beside those of its tokens
    unknown_architecture: str = ""  # name of the model's class where vLLM has none of that name
    arithmetic: Arithmetic | None = None  # what computes one token; None where only the weights tell
    parameter_bits: int = 16  # of one parameter in the checkpoint
    hidden_size: int | None = None  # width of the model between its layers; None if not known
    matrices: int | None = None  # matrices of all its layers, those of every expert; None if not known
    media: bool = False  # whether it takes images, video or sound beside text
    notes: tuple[str, ...] = ()  # what a reader of the report should know

    @property
    def keeps_latents_alone(self) -> bool:
        """Whether every layer keeps a latent, a draft's among them."""
        return bool(self.groups) and all(group.kind is LayerKind.MLA for group in self.groups)


_TEXT_ALONE: Final = "--language-model-only"
_LIMITS: Final = "--limit-mm-per-prompt"
_MEDIA: Final = ("image", "video", "audio")


def takes_media(arguments: CommandLine, shape: ModelShape) -> bool:
    """Whether an engine takes images, video or sound: one that takes none of them has no encoder either.

    Source: vllm/config/multimodal.py (get_limit_per_prompt), 0.32 and 0.33.
    """
    if not (shape.media or shape.images_both_ways) or arguments.is_on(_TEXT_ALONE):
        return False
    limits = arguments.json_object(_LIMITS)
    counts = (limit.get("count") if isinstance(limit, Mapping) else limit for limit in limits.values())
    return not limits.keys() >= set(_MEDIA) or any(number != 0 for number in counts)
