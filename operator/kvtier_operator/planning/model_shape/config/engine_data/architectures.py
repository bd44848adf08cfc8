"""What serves an architecture: a class of vLLM's own, the Transformers library's, or nothing any more.

Read as vLLM 0.32 and 0.33 read it: model_executor/models/registry.py.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kvtier_operator.planning.model_shape.config.fields import ConfigFields

SUFFIXES: Final = (
    *("ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel", "ForTextEncoding"),
    *("EmbeddingModel", "ForSequenceClassification", "ForTokenClassification", "ForAudioClassification"),
    *("ForImageClassification", "ForVideoClassification", "ClassificationModel", "ForRewardModeling"),
    *("RewardModel", "Model"),
)
"""Ends of names that vLLM takes for one another: it converts them (config/model.py, _SUFFIX_TO_DEFAULTS)."""


def architectures_of(config: ConfigFields) -> tuple[str, ...]:
    """The names in a file; empty where it has none.

    Raises:
        InvalidInputError: They are no list of words.
    """
    return config.root_strings("architectures")


def without_own_class(config: ConfigFields) -> str:
    """The first name, where vLLM has a class of its own for none; the Transformers library's may serve it.

    A file without names is of a type whose class vLLM knows.
    """
    named = architectures_of(config)
    return "" if any(_has_own_class(each) for each in named) else next(iter(named), "")


def unknown_architecture(config: ConfigFields) -> str:
    """The same, unless vLLM names it as one that the Transformers library serves."""
    name = without_own_class(config)
    return "" if name in _table()["library"] else name


def refuse_removed(config: ConfigFields) -> None:
    """Nothing for a model that vLLM serves, or may serve.

    Raises:
        InvalidInputError: Neither vLLM nor the Transformers library serves it.
    """
    removed = _table()["removed"] if without_own_class(config) else {}
    name = next((each for each in architectures_of(config) if each in removed), None)
    if name is None:
        return
    raise config.wrong(
        "architectures",
        f"vLLM served {name} until {removed[name]} and does no more: serve another model, or set "
        "spec.model.geometry where an image of your own serves it",
    )


def refuse_states_of_the_library(config: ConfigFields) -> None:
    """For a model whose layers keep states: vLLM serves those with classes of its own alone.

    Source: models/transformers/base.py (_create_attention_instances), 0.32 and 0.33.

    Raises:
        InvalidInputError: It has no class of its own.
    """
    if name := without_own_class(config):
        raise config.wrong(
            "architectures",
            f"vLLM has no class of {name}, and the Transformers library's cannot serve layers that keep a "
            "state: serve another model, or set spec.model.geometry where an image of your own serves it",
        )


def _has_own_class(name: str) -> bool:
    own = _own()
    stems = (name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix))
    return name in own or any(stem + suffix in own for stem in stems for suffix in SUFFIXES)


@cache
def _own() -> frozenset[str]:
    return frozenset(_table()["own"])


@cache
def _table() -> Mapping[str, Any]:
    text = files(__package__).joinpath("architectures.json").read_text(encoding="utf-8")
    table: Mapping[str, Any] = json.loads(text)
    return table
