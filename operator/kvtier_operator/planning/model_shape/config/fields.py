"""Typed reading of a Hugging Face config.json: a wrong field is named, never guessed around."""

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from kvtier_operator.api.schema.complaints import show_value
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.model_shape.config.engine_data.defaults import (
    MOST_LAYERS,
    TypeDefaults,
    defaults_of,
)
from kvtier_operator.planning.model_shape.config.model_files import (
    from_mistral_params,
    from_moondream3,
    is_mistral_params,
    is_moondream3,
)

# Names that multimodal configurations nest the language model under (transformers, configuration_utils.py,
# get_text_config; vLLM's and Qwen-Omni's own).
TEXT_CONFIGS: Final = (
    *("text_config", "llm_config", "language_config", "thinker_config", "vlm_config", "decoder"),
    *("generator", "text_encoder"),
)
# Lists of one entry a layer, which a file may give in place of their number.
_LAYER_LISTS: Final = ("layers_block_type", "hybrid_override_pattern", "layer_types")
_LAYERS: Final = "num_hidden_layers"
_MOST: Final = 2**31 - 1

Entries = TypeVar("Entries", bound=Sequence[object])


class ConfigFields:
    """The language model's part of a config.json, with what the engine reads where it leaves a field out.

    Whoever reads a field gets an InvalidInputError where it holds something else than is asked for.

    Args:
        config: The parsed file, or Mistral's params.json.
        source: The file's name, for messages.
        within: Names of what these fields are nested in, each with a dot; empty for a whole file.
    """

    def __init__(self, config: Mapping[str, Any], source: str, within: str = "") -> None:
        self._source, self._within = source, within
        self._root, self._text, self._defaults = config, config, TypeDefaults()
        if not within:
            if is_moondream3(config):
                self._root = from_moondream3(config)
            elif is_mistral_params(config):
                self._root = from_mistral_params(config)
            self._check_parts()
            self._text, self._defaults = _language_model(self._root)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields that the language model's part has."""
        return tuple(self._text)

    def _check_parts(self) -> None:
        """Refuse what nothing else reads where it is of another type."""
        for name, kind, wanted in (("model_type", str, "text"), ("text_config", Mapping, "an object")):
            value = self._root.get(name)
            if value is not None and not isinstance(value, kind):
                raise self.error(name, f"got {show_value(value)}, must be {wanted}")

    def get(self, *names: str) -> object:
        """First of these fields that is not null.

        Looked for in the language model's part, then among the defaults of its type, which a null that is
        written down does not have.
        """
        _, value = self._find(names)
        return value

    def _find(self, names: Sequence[str]) -> tuple[str, object]:
        """What `get` returns, and the name that it stands under."""
        spellings = [
            spelling for name in names for spelling in (name, self._defaults.other_names.get(name, name))
        ]
        for name in spellings:
            if (value := self._text.get(name)) is not None:
                return name, value
        for name in names:
            if name not in self._text and name in self._defaults.fields:
                return name, self._defaults.fields[name]
        return names[0], None

    def has(self, *names: str) -> bool:
        """Whether any of these fields is there and not null."""
        return self.get(*names) is not None

    def optional_int(self, *names: str) -> int | None:
        """A whole number, 0 or more; None where no such field is there."""
        return self._whole_number(*self._find(names), _MOST)

    def layers(self, *names: str) -> int | None:
        """A number of layers, or of what layers are multiplied by; None where no such field is there."""
        return self._whole_number(*self._find(names), MOST_LAYERS)

    def int_in_file(self, *names: str) -> builtins.int | None:
        """First of these fields that is a whole number in the file itself; the defaults do not count."""
        values = (self._text.get(name) for name in names)
        return next((value for value in values if type(value) is builtins.int), None)

    def root_int(self, name: str) -> int | None:
        """A whole number that stands at the root; None where it is not there."""
        return self._whole_number(name, self._root.get(name), _MOST)

    def _whole_number(self, name: str, value: object, most: builtins.int) -> builtins.int | None:
        if value is None:
            return None
        # NaN is in no range
        if not isinstance(value, builtins.int | float) or isinstance(value, bool) or not 0 <= value <= most:
            raise self.error(name, f"got {show_value(value)}, must be a whole number from 0 to {most:,}")
        if value != builtins.int(value):
            raise self.error(name, f"got {show_value(value)}, must be a whole number")
        return builtins.int(value)

    def period(self, *names: str) -> int | None:
        """After how many layers something comes again, 1 or more; None where no such field is there."""
        number = self.optional_int(*names)
        if number == 0:
            raise self.error(self._find(names)[0], "got 0, must be 1 or more: layers are counted by it")
        return number

    def int(self, *names: str) -> int:
        """A whole number, 1 or more."""
        value = self.optional_int(*names)
        if not value:
            raise self.error(
                self._find(names)[0],
                "missing or 0; give a config.json of a decoder model, or set spec.model.geometry",
            )
        return value

    def text(self, *names: str) -> str:
        """A string; empty where no such field is there."""
        name, value = self._find(names)
        if value is not None and not isinstance(value, str):
            raise self.error(name, f"got {show_value(value)}, must be text")
        return self.word(*names)

    def word(self, *names: str) -> str:
        """A string; empty where the field holds none, which it need not."""
        name, value = self._find(names)
        return self._check_length(name, value) if isinstance(value, str) else ""

    def strings(self, *names: str) -> tuple[str, ...]:
        """A list of strings; empty where no such field is there."""
        return self._words(*self._find(names))

    def root_strings(self, name: str) -> tuple[str, ...]:
        """A list of strings that stands at the root; raises as `strings`."""
        return self._words(name, self._root.get(name))

    def _words(self, name: str, value: object) -> tuple[str, ...]:
        if value is None:
            return ()
        words = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        if not isinstance(value, list | tuple) or not words:
            raise self.error(name, f"got {show_value(value)}, must be a list of words")
        return self._check_length(name, tuple(value))

    def numbers(self, name: str) -> tuple[builtins.int, ...]:
        """A list of whole numbers; empty where no such field is there."""
        value = self.get(name)
        if value is None:
            return ()
        whole = isinstance(value, list | tuple) and all(type(item) is builtins.int for item in value)
        if not isinstance(value, list | tuple) or not whole:
            raise self.error(name, f"got {show_value(value)}, must be a list of whole numbers")
        return self._check_length(name, tuple(value))

    def _check_length(self, name: str, entries: Entries) -> Entries:
        """What has an entry for each layer."""
        if len(entries) > MOST_LAYERS:
            raise self.error(name, f"has {len(entries):,} entries, must be at most {MOST_LAYERS:,}")
        return entries

    def default_layer_types(self, layers: builtins.int) -> tuple[str, ...]:
        """Kinds of the layers where the file names none; empty where all are of full attention."""
        period, last = self._defaults.layer_period, self._defaults.last_layer
        names = tuple(period[i % len(period)] for i in range(layers)) if period else ()
        return (*names[:-1], last) if names and last else names

    def mapping(self, *names: str) -> Mapping[str, Any]:
        """A nested object; empty where no such field is there."""
        return self._object(*self._find(names))

    def _object(self, name: str, value: object) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.error(name, f"got {show_value(value)}, must be an object")
        return value

    def part(self, name: str) -> "ConfigFields":
        """A nested object's fields, which are named with it; none where it is not there."""
        return ConfigFields(self.mapping(name), self._source, f"{self._within}{name}.")

    def parts(self, name: str) -> "tuple[ConfigFields, ...]":
        """A list of nested objects, each named by its place; empty where no such field is there."""
        value = self.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.error(name, "must be a list of objects")
        for place, item in enumerate(self._check_length(name, value)):
            if not isinstance(item, Mapping):
                raise self.error(f"{name}[{place}]", f"got {show_value(item)}, must be an object")
        within = self._within + name
        return tuple(
            ConfigFields(item, self._source, f"{within}[{place}].") for place, item in enumerate(value)
        )

    def root(self, name: str) -> object:
        """What stands at the root under this name; None where nothing does."""
        return self._root.get(name)

    def root_mapping(self, *names: str) -> Mapping[str, Any]:
        """First of these nested objects at the root; empty where there is none."""
        values = [self._object(name, self._root[name]) for name in names if self._root.get(name) is not None]
        return next(iter(values), {})

    def root_text(self, name: str) -> str:
        """A string that stands at the root; empty where it is not there."""
        value = self._root.get(name)
        return value if isinstance(value, str) else ""

    def error(self, field: str, message: str) -> InvalidInputError:
        """The error that names a field of this file."""
        return InvalidInputError(self._source, Problem(self._within + field, message))


def _language_model(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], TypeDefaults]:
    """The innermost configuration of a language model, and the defaults of its type."""
    part, model_type = config, ""
    while True:
        own_type = part.get("model_type")
        model_type = own_type if isinstance(own_type, str) and own_type else model_type
        defaults = defaults_of(model_type)
        name = next((name for name in TEXT_CONFIGS if isinstance(part.get(name), Mapping)), None)
        if name is None:
            break
        part, model_type = part[name], defaults.nested.get(name, "")
    for inner in defaults.nested.values():  # an older file, whose language model stands at the root
        defaults = defaults_of(inner)
    return {"model_type": model_type, **_layers_in_lists(part), **part}, defaults


def _layers_in_lists(part: Mapping[str, Any]) -> dict[str, int]:
    """The number of layers that a list of them gives."""
    lists = (part.get(name) for name in _LAYER_LISTS)
    return next(
        ({_LAYERS: len(entries)} for entries in lists if isinstance(entries, Sequence) and entries), {}
    )
