"""`spec.model`: which model is served, and its KV geometry where kvtier does not know it."""

from pydantic import Field

from kvtier_operator.api.base import ApiModel, cel, with_rules
from kvtier_operator.api.quantity import ByteQuantity


class SecretKeyRef(ApiModel):
    """A key of a Secret in the resource's namespace."""

    name: str = Field(description="Name of the Secret.", min_length=1, max_length=253)
    key: str = Field(
        "HF_TOKEN", description="Key in the Secret that holds the token.", min_length=1, max_length=253
    )


class GeometrySpec(ApiModel):
    """KV geometry of a model that neither a config.json nor the catalogue describes."""

    model_config = with_rules(
        cel(
            "has(self.kvBytesPerToken) != has(self.layers)",
            "give either kvBytesPerToken alone, or layers with the shape of one layer",
        ),
        cel(
            "has(self.kvBytesPerToken) || has(self.kvLoraRank) || (has(self.kvHeads) && has(self.headDim))",
            "layers needs kvHeads and headDim (attention with KV heads) or kvLoraRank (MLA)",
        ),
    )

    kv_bytes_per_token: int | None = Field(
        None,
        description="Bytes of KV cache one token takes, all layers and all heads together, in the cache's dtype.",
        ge=1,
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
        None, description="Window of the sliding-window layers, in tokens.", ge=1
    )
    sliding_window_layers: int | None = Field(
        None, description="How many of the layers use the sliding window.", ge=1, le=10000
    )
    linear_layers: int | None = Field(
        None,
        description="How many further layers keep a fixed state (linear attention, Mamba) instead of tokens.",
        ge=1,
        le=10000,
    )
    state_bytes_per_layer: int | None = Field(
        None, description="Bytes of that fixed state, for one sequence and layer.", ge=1
    )
    dtype_bytes: int = Field(
        2, description="Bytes of one element of the model's own dtype (2 for bf16 and fp16).", ge=1, le=8
    )


class ModelSpec(ApiModel):
    """The model that the engines serve."""

    name: str = Field(
        description="Model as vLLM takes it: a Hugging Face id such as Qwen/Qwen3-32B, or a folder in the engine's image or on this machine.",
        min_length=1,
        max_length=512,
        json_schema_extra={
            "x-kubernetes-validations": [
                cel("self == oldSelf", "model.name is immutable; make a new KVCacheTier for another model")
            ]
        },
    )
    revision: str | None = Field(
        None, description="Branch, tag or commit of the model's repository.", min_length=1, max_length=256
    )
    token_secret_ref: SecretKeyRef | None = Field(
        None,
        description="Secret with the Hugging Face token, for gated models. kvtier never reads it: the pod does.",
    )
    geometry: GeometrySpec | None = Field(
        None, description="KV geometry, only for a model that kvtier cannot find out about by itself."
    )
    weights: ByteQuantity | None = Field(
        None,
        description="Size of the model's weights, all ranks together; sizes the engine's memory where the catalogue does not know it.",
    )
