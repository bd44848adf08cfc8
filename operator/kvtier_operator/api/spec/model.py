"""`spec.model`: which model is served, and its KV geometry where kvtier does not know it."""

from typing import Annotated, Final

from pydantic import Field

from kvtier_operator.api.base import ApiModel, rule
from kvtier_operator.api.formats import DnsSubdomain
from kvtier_operator.api.quantity import ByteQuantity
from kvtier_operator.api.spec.model_source import SourcedModel

KEY_PATTERN: Final = r"^(\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*)$"
"""Of a Secret: Kubernetes refuses what begins with two points, as its own links in a volume do."""
SecretKey = Annotated[str, Field(min_length=1, max_length=253, pattern=KEY_PATTERN)]
SERVED_NAME_PATTERN: Final = "^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$"
ADAPTER_PATTERN: Final = "^[A-Za-z0-9/][A-Za-z0-9._/@+-]*$"
ServedName = Annotated[str, Field(min_length=1, max_length=256, pattern=SERVED_NAME_PATTERN)]


class SecretKeyRef(ApiModel):
    """A key of a Secret in the resource's namespace."""

    name: DnsSubdomain = Field(description="Name of the Secret.")
    key: SecretKey = Field(
        "HF_TOKEN",
        description="Key in the Secret that holds the token.",
    )


class ConfigRef(ApiModel):
    """A ConfigMap in the resource's namespace with a model's configuration."""

    name: DnsSubdomain = Field(
        description="Name of the ConfigMap: under config.json (or Mistral's params.json) the model's own file, under hf_quant_config.json the one beside it, where there is one."
    )


class GeometrySpec(ApiModel):
    """KV geometry of a model that neither a config.json nor the catalogue describes."""

    kv_bytes_per_token: int | None = Field(
        None,
        description="Bytes of KV cache one token takes in a tier, all layers and all ranks together, in the cache's dtype: heads that ranks replicate count once a rank.",
        ge=1,
        le=2**40,
    )
    layers: int | None = Field(
        None, description="Number of transformer layers that keep a KV cache.", ge=1, le=10000
    )
    kv_heads: int | None = Field(None, description="Number of key/value heads of a layer.", ge=1, le=10000)
    head_dim: int | None = Field(None, description="Size of one key head.", ge=1, le=100000)
    value_head_dim: int | None = Field(
        None, description="Size of one value head, where it differs from headDim.", ge=1, le=100000
    )
    kv_lora_rank: int | None = Field(
        None, description="Rank of the compressed KV latent (MLA models).", ge=1, le=100000
    )
    qk_rope_head_dim: int | None = Field(
        None, description="Size of the decoupled rotary key beside the latent (MLA models).", ge=0, le=100000
    )
    sliding_window: int | None = Field(
        None, description="Window of the sliding-window layers, in tokens.", ge=1, le=2**31 - 1
    )
    sliding_window_layers: int | None = Field(
        None,
        description="How many of the layers use the sliding window; the others attend to everything.",
        ge=1,
        le=10000,
    )
    linear_layers: int | None = Field(
        None,
        description="How many further layers keep a fixed state (linear attention, Mamba) instead of tokens.",
        ge=1,
        le=10000,
    )
    state_bytes_per_layer: int | None = Field(
        None, description="Bytes of that fixed state, for one sequence and layer.", ge=1, le=2**40
    )
    dtype_bytes: int = Field(
        2, description="Bytes of one element of the model's own dtype (2 for bf16 and fp16).", ge=1, le=8
    )

    @rule(
        "has(self.kvBytesPerToken) != has(self.layers)",
        "give either kvBytesPerToken alone, or layers with the shape of one layer",
    )
    def has_one_form(self) -> bool:
        """The sum, or what it is made of."""
        return (self.kv_bytes_per_token is None) != (self.layers is None)

    @rule(
        "has(self.kvBytesPerToken) || has(self.kvLoraRank) || (has(self.kvHeads) && has(self.headDim))",
        "layers needs kvHeads and headDim (attention with KV heads) or kvLoraRank (MLA)",
    )
    def layers_have_a_shape(self) -> bool:
        """Layers without a shape have no size."""
        has_heads = self.kv_heads is not None and self.head_dim is not None
        return self.kv_bytes_per_token is not None or self.kv_lora_rank is not None or has_heads

    @rule(
        "!has(self.kvBytesPerToken) || !(has(self.kvHeads) || has(self.headDim) || has(self.valueHeadDim) || has(self.kvLoraRank) || has(self.qkRopeHeadDim) || has(self.slidingWindow) || has(self.linearLayers))",
        "kvBytesPerToken already holds every layer; leave the shape of the layers out",
    )
    def sum_stands_alone(self) -> bool:
        """Two answers to one question can differ."""
        parts = (
            self.kv_heads,
            self.head_dim,
            self.value_head_dim,
            self.kv_lora_rank,
            self.qk_rope_head_dim,
            self.sliding_window,
            self.linear_layers,
        )
        return self.kv_bytes_per_token is None or all(part is None for part in parts)

    @rule(
        "!has(self.kvLoraRank) || !(has(self.kvHeads) || has(self.headDim) || has(self.valueHeadDim))",
        "kvLoraRank (MLA) stands in place of kvHeads, headDim and valueHeadDim: give one or the other",
    )
    def mla_has_no_kv_heads(self) -> bool:
        """MLA keeps one latent for all heads."""
        has_heads = not (self.kv_heads is None and self.head_dim is None and self.value_head_dim is None)
        return self.kv_lora_rank is None or not has_heads

    @rule(
        "!has(self.qkRopeHeadDim) || has(self.kvLoraRank)",
        "qkRopeHeadDim belongs to MLA models: give kvLoraRank with it",
        field=".qkRopeHeadDim",
    )
    def rope_key_needs_latent(self) -> bool:
        """The decoupled key is stored only beside a latent."""
        return self.qk_rope_head_dim is None or self.kv_lora_rank is not None

    @rule(
        "has(self.slidingWindow) == has(self.slidingWindowLayers)",
        "slidingWindow and slidingWindowLayers go together",
    )
    def window_has_layers(self) -> bool:
        """A window without layers, or the other way round, has no size."""
        return (self.sliding_window is None) == (self.sliding_window_layers is None)

    @rule(
        "!has(self.slidingWindowLayers) || !has(self.layers) || self.slidingWindowLayers <= self.layers",
        "slidingWindowLayers counts some of layers, so it cannot be more than layers",
        field=".slidingWindowLayers",
    )
    def window_layers_are_layers(self) -> bool:
        """They are counted in layers."""
        return (
            self.sliding_window_layers is None
            or self.layers is None
            or self.sliding_window_layers <= self.layers
        )

    @rule(
        "has(self.linearLayers) == has(self.stateBytesPerLayer)",
        "linearLayers and stateBytesPerLayer go together",
    )
    def state_has_layers(self) -> bool:
        """A state without layers, or the other way round, has no size."""
        return (self.linear_layers is None) == (self.state_bytes_per_layer is None)


class LoraModule(ApiModel):
    """A LoRA adapter that engines load when they start."""

    name: ServedName = Field(description="What clients call it, in place of the model.")
    source: str = Field(
        description="Hugging Face id such as ORG/ADAPTER, or the folder's whole path in the engine's container: of its image, or of a volume that engine.podTemplate adds.",
        min_length=1,
        max_length=1024,
        pattern=ADAPTER_PATTERN,
    )


class ModelSpec(SourcedModel):
    """The model that the engines serve."""

    served_names: list[ServedName] = Field(
        default_factory=list,
        description="What clients call the model (vLLM's --served-model-name); the first stands in answers and metrics. Empty: its name.",
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    lora_modules: list[LoraModule] = Field(
        default_factory=list,
        description="LoRA adapters that engines serve beside the model (vLLM's --lora-modules). Their memory is planned by --max-loras, --max-lora-rank and --max-cpu-loras in spec.engine.extraArgs, and vLLM's defaults.",
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )

    token_secret_ref: SecretKeyRef | None = Field(
        None,
        description="Secret with the Hugging Face token, for gated models. kvtier never reads it: the pod does.",
    )
    geometry: GeometrySpec | None = Field(
        None, description="KV geometry, only for a model that kvtier cannot find out about by itself."
    )
    draft_geometry: GeometrySpec | None = Field(
        None,
        description="The same of the model that drafts tokens in speculative decoding (--speculative-config in spec.engine.extraArgs), only where kvtier cannot find out about it by itself. Its layers are cached in every tier beside the model's.",
    )
    config_ref: ConfigRef | None = Field(
        None,
        description="ConfigMap with the model's config.json, for a model that the catalogue lacks; it goes before the catalogue. Read when the resource changes: give a changed configuration a name of its own.",
    )
    weights: ByteQuantity | None = Field(
        None,
        description="Size of the model's weights, all ranks together; sizes the engine's memory and disk where the catalogue does not know it.",
    )

    @rule(
        "!(has(self.geometry) && has(self.configRef))",
        "geometry says what configRef would tell; give one of them",
    )
    def has_one_source(self) -> bool:
        """Two answers to one question can differ."""
        return self.geometry is None or self.config_ref is None

    @rule(
        "!has(self.loraModules) || self.loraModules.all(each, has(self.servedNames) && size(self.servedNames) > 0 "
        "? !(each.name in self.servedNames) : each.name != self.name)",
        "an adapter has the name of the model, so that nobody could ask for one of them; give it another",
        field=".loraModules",
    )
    def adapters_have_names_of_their_own(self) -> bool:
        """A request says by the name which it is for."""
        return not {module.name for module in self.lora_modules} & {*self.names}

    @property
    def names(self) -> tuple[str, ...]:
        """What clients call the model, the name in answers and metrics first."""
        return (*self.served_names,) or (self.name,)
