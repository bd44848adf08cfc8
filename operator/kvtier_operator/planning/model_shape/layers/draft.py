"""The layers that speculative decoding adds to a model: they are cached, moved and kept beside its own.

vLLM gives every attention layer that the draft registers a KV cache of its own, in the groups of the model's
layers (v1/spec_decode/llm_base_proposer.py, load_model; v1/worker/gpu/spec_decode/speculator.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kvtier_operator.api.resource import Spec
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.arguments.speculation import WITHOUT_LAYERS, Method, Speculation, speculation
from kvtier_operator.planning.model_shape.config.engine_data.architectures import unknown_draft
from kvtier_operator.planning.model_shape.config.fields import ConfigFields
from kvtier_operator.planning.model_shape.from_config import shape_from_config
from kvtier_operator.planning.model_shape.layers.mtp import like_the_model, mtp_groups, mtp_layers
from kvtier_operator.planning.model_shape.resolve import shape_from_spec
from kvtier_operator.planning.model_shape.shape import LayerGroup, LayerKind, ModelShape
from kvtier_operator.planning.observed import Observed

_ONE_LAYER: Final = frozenset({Method.EAGLE, Method.EAGLE3})
"""Methods whose drafts are published with one layer, shaped as the model's, or beside latents as Llama's."""
_HEADS, _HEAD_DIM = 128, 128
"""Of such a layer beside latents, where nothing tells the model's heads: as many as DeepSeek V3 has."""
_WITHOUT_CACHE: Final = {
    "gemma4_assistant": "it reads the model's cache",  # vLLM, v1/spec_decode/gemma4.py
    "gemma4_unified_assistant": "it reads the model's cache",
    "medusa": "it has no attention",
    "mlp_speculator": "it has no attention",
}
"""Types of drafts that keep no keys and values, and why."""
_FIELD: Final = "spec.model.draftGeometry"
_OF_MODEL: Final = "spec.model.geometry"


@dataclass(frozen=True, slots=True)
class Draft:
    """What drafts tokens for a model."""

    speculation: Speculation  # what the resource asks for
    groups: tuple[LayerGroup, ...] = ()  # its layers that keep keys and values
    source: str = ""  # where their shape came from; empty where nothing tells it
    is_estimate: bool = False  # whether the layers are what such drafts usually are
    weights_bytes: int | None = None  # size of its weights beside the model's; None if not known
    # layers that the model brings for it; None where they are not asked for, or not known
    predictors: int | None = None
    # bytes of one token, where the resource gives nothing finer of it or of the model
    bytes_per_token: int = 0
    vocabulary: int | None = None  # tokens of it; None if not known
    unknown_architecture: str = ""  # name of its class where vLLM has none of that name

    @property
    def layers(self) -> int:
        """Layers that keep keys and values."""
        return sum(group.layers for group in self.groups)

    @property
    def tokens(self) -> int:
        """Tokens that are drafted at a time."""
        return self.speculation.tokens or self.predictors or 1


def must_not_be_a_draft(observed: Observed) -> None:
    """Refuses a draft in the model's place, for which vLLM would serve the model that it names.

    Raises:
        InvalidInputError: The configuration is one of the speculators library (vLLM,
            transformers_utils/config.py, maybe_override_with_speculators).
    """
    config = observed.model_config or {}
    if not config.get("speculators_model_type"):
        return
    parts: Any = config.get("speculators_config")
    verifier = parts.get("verifier") if isinstance(parts, Mapping) else None
    target = verifier.get("name_or_path") if isinstance(verifier, Mapping) else None
    raise InvalidInputError(
        observed.model_config_source or "config.json",
        Problem(
            "spec.model.name",
            f"this is a draft for {target or 'another model'}, for which vLLM would serve that one: name the "
            "model here, and the draft in --speculative-config of spec.engine.extraArgs",
        ),
    )


def plan_draft(spec: Spec, shape: ModelShape, observed: Observed) -> Draft | None:
    """What the resource's speculative decoding adds; None without any.

    Raises:
        InvalidInputError: vLLM would not take the arguments, or the draft's config.json cannot be sized.
    """
    asked = speculation(spec.engine.extra_args)
    if asked is None:
        return None
    draft = _draft(asked, spec, shape, observed)
    if shape.bytes_per_token is None or draft.bytes_per_token:
        return draft
    return replace(draft, bytes_per_token=_bytes_per_token(draft.groups, shape.dtype_bytes))


def _bytes_per_token(groups: tuple[LayerGroup, ...], dtype_bytes: int) -> int:
    return sum(
        group.layers * (group.elements_per_token * dtype_bytes + group.index_bytes) for group in groups
    )


def _draft(asked: Speculation, spec: Spec, shape: ModelShape, observed: Observed) -> Draft:
    if asked.method in WITHOUT_LAYERS:
        return Draft(asked, source=f"method {asked.method} has no layers of its own", weights_bytes=0)
    if spec.model.draft_geometry is not None:
        return _of_shape(asked, shape_from_spec(spec.model.draft_geometry, _FIELD))
    if asked.method is Method.MTP and asked.model in {None, spec.model.name}:
        return _of_the_model(asked, spec, shape, observed)
    return _of_its_own(asked, shape, observed)


def with_draft(shape: ModelShape, draft: Draft | None) -> ModelShape:
    """The model's shape with the draft's layers beside its own."""
    if draft is None:
        return shape
    added = () if shape.bytes_per_token is not None else draft.groups
    return replace(shape, groups=(*shape.groups, *added), draft_tokens=draft.tokens)


def _of_the_model(asked: Speculation, spec: Spec, shape: ModelShape, observed: Observed) -> Draft:
    config = _config_of(spec, observed)
    if config is None:  # spec.model.geometry alone
        return _one_layer(asked, shape, weights_bytes=0)
    fields = ConfigFields(config, shape.source)
    layers = mtp_layers(fields) or 0
    groups = mtp_groups(fields, shape, layers) if layers else ()
    return Draft(asked, groups, shape.source, weights_bytes=0, predictors=layers)


def _config_of(spec: Spec, observed: Observed) -> Mapping[str, Any] | None:
    if spec.model.geometry is not None:
        return None
    if observed.model_config:
        return observed.model_config
    from kvtier_operator.planning.model_shape.catalogue import config_in_catalogue  # noqa: PLC0415 - slow to import

    return config_in_catalogue(spec.model.name)


def _of_its_own(asked: Speculation, shape: ModelShape, observed: Observed) -> Draft:
    """A draft with a configuration of its own: the one that was observed, or the catalogue's."""
    draft = _shape_of_draft(asked, observed)
    if isinstance(draft, Draft):
        return draft
    if draft is not None:
        return _of_shape(asked, draft)
    if asked.method not in _ONE_LAYER:
        return Draft(asked)
    only_latents = {group.kind for group in shape.groups} == {LayerKind.MLA}
    return _layer_of_heads(asked, shape) if only_latents else _one_layer(asked, shape)


def _layer_of_heads(asked: Speculation, shape: ModelShape) -> Draft:
    """Most drafts for models with latents have ordinary attention: every rank then stores its latent.

    With a latent of its own a draft costs far less, so this is the figure that holds for either.
    """
    heads = shape.attention_heads or _HEADS
    layer = LayerGroup(LayerKind.FULL, 1, kv_heads=heads, key_dim=_HEAD_DIM, value_dim=_HEAD_DIM, draft=True)
    source = f"one layer of ordinary attention, {heads} heads of {_HEAD_DIM}"
    return Draft(asked, (layer,), source, is_estimate=True)


def _of_shape(asked: Speculation, shape: ModelShape) -> Draft:
    return Draft(
        asked,
        tuple(replace(group, draft=True) for group in shape.groups),
        shape.source,
        weights_bytes=shape.weights_bytes,
        bytes_per_token=shape.bytes_per_token or 0,
        vocabulary=shape.vocabulary,
        unknown_architecture=shape.unknown_architecture,
    )


def _one_layer(asked: Speculation, shape: ModelShape, *, weights_bytes: int | None = None) -> Draft:
    groups = like_the_model(shape, LayerKind.FULL, 1)
    source = "one layer as the model's" if groups else ""
    return Draft(asked, groups, source, is_estimate=True, weights_bytes=weights_bytes)


def _shape_of_draft(asked: Speculation, observed: Observed) -> ModelShape | Draft | None:
    if observed.draft_config is None:
        from kvtier_operator.planning.model_shape.from_catalogue import shape_from_catalogue  # noqa: PLC0415 - slow to import

        return shape_from_catalogue(asked.model or "")
    config, source = observed.draft_config, observed.draft_config_source or "the draft's config.json"
    if why := _WITHOUT_CACHE.get(str(config.get("model_type"))):
        return Draft(asked, source=f"{source}: {why}", weights_bytes=observed.draft_weights_bytes)
    layer = config.get("transformer_layer_config")
    of_speculators = isinstance(layer, Mapping)  # vLLM, transformers_utils/configs/speculators
    if isinstance(layer, Mapping):
        config = layer
    try:
        shape = shape_from_config(config, source, weights_bytes=observed.draft_weights_bytes)
    except InvalidInputError as error:  # which advises what to do about a model
        problems = (
            Problem(problem.field, problem.message.replace(_OF_MODEL, _FIELD)) for problem in error.problems
        )
        raise InvalidInputError(source, *problems) from error
    if asked.method is Method.MTP:  # a checkpoint of the predictors alone, described as the whole model is
        fields = ConfigFields(config, source)
        return replace(shape, groups=mtp_groups(fields, shape, mtp_layers(fields) or 1))
    unknown = "" if of_speculators else unknown_draft(ConfigFields(config, source), asked.method)
    return replace(shape, unknown_architecture=unknown)
