"""The catalogue of well-known models: data beside this file."""

import operator
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, Final

import yaml

from kvtier_operator.planning.model_shape.shape import Arithmetic

_BYTES_PER_PARAMETER: Final = 2
"""Of the catalogue's weights, where it says no number of parameters."""


@cache
def entries() -> Mapping[str, Mapping[str, Any]]:
    """Every entry of `catalogue.yaml`, by repository."""
    text = files(__package__).joinpath("catalogue.yaml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    catalogue: dict[str, Mapping[str, Any]] = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader, in C
    return catalogue


@cache
def names() -> Mapping[str, str]:
    """Entry by repository or alias, in lower case: Hugging Face ids are not case-sensitive."""
    return {name.lower(): entry for name, entry in _with_entries()}


def published_names() -> tuple[str, ...]:
    """Every repository and alias, as their publishers write them."""
    return tuple(sorted((name for name, _ in _with_entries()), key=str.lower))


def _with_entries() -> Iterator[tuple[str, str]]:
    for entry, fields in entries().items():
        yield from ((name, entry) for name in (entry, *fields.get("aliases", ())))


def entry_of(model: str) -> Mapping[str, Any] | None:
    """What the catalogue has of a model; None for a model that is not in it."""
    name = names().get(model.lower())
    return None if name is None else entries()[name]


def config_in_catalogue(model: str) -> Mapping[str, Any] | None:
    """The fields of its config.json that the catalogue has; None for a model that is not in it."""
    entry = entry_of(model)
    return None if entry is None else entry["config"]


def arithmetic_of_entry(fields: Mapping[str, Any]) -> Arithmetic | None:
    """What computes one token: quantised or not, the same number of parameters."""
    if (published := fields.get("active_parameters")) is not None:
        return Arithmetic(published, "the catalogue, as published")
    if (weights_bytes := fields.get("weights_bytes")) is None:
        return None
    return Arithmetic(weights_bytes // _BYTES_PER_PARAMETER, "the catalogue, all for every token")


_OF_COPIES: Final = re.compile(
    r"[-.](fp8|fp4|nvfp4|mxfp4|mxfp8|awq|gptq|int[48]|w\d+a\d+|[48]bit|bnb|dynamic|static|block|kv|quantized|unsloth|"
    r"autoround|gguf|mlx|bf16)$"
)
"""What others add to a model's name, a word at a time, who quantise it or put it up again."""


def original(model: str) -> str | None:
    """The model of the catalogue of which this is a copy by its name; None for no copy, or of several."""
    base = model.lower().rpartition("/")[2]
    published = {*published_names()}
    while not (matches := [name for name in published if name.lower().rpartition("/")[2] == base]):
        shorter = _OF_COPIES.sub("", base)
        if shorter == base:
            return None
        base = shorter
    return matches[0] if len(matches) == 1 else None


_NUMBER: Final = re.compile("[0-9]+")
_WORD: Final = re.compile("[a-z]{2,}")
_OF_A_TUNE: Final = frozenset({"instruct", "it", "chat", "base", "hf", "thinking"})


def _of_one_line(name: str, other: str) -> bool:
    """Whether names have the same words, but for slips, and differ in one number at most."""
    numbers, others = _NUMBER.findall(name), _NUMBER.findall(other)
    if len(numbers) != len(others) or sum(map(operator.ne, numbers, others)) > 1:
        return False
    words, there = _words(name), _words(other)
    return all(get_close_matches(word, there, 1) for word in words - there) and all(
        get_close_matches(word, words, 1) for word in there - words
    )


def _words(name: str) -> set[str]:
    """Words of a name but for those that say nothing of the family: Qwen3-VL is another one than Qwen3."""
    return {*_WORD.findall(name)} - _OF_A_TUNE


def similar(model: str) -> tuple[str, ...]:
    """Names in the catalogue that are close to this one, as they are published, the closest first."""
    repository = "/".join(model.lower().split("/")[-2:])  # whatever a host or a folder before it
    near = get_close_matches(
        repository, [name for name in names() if _of_one_line(name, repository)], n=2, cutoff=0.75
    )
    published = {name.lower(): name for name in published_names()}
    return tuple(published[name] for name in near)
