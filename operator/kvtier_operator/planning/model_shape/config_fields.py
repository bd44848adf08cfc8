"""Typed reading of a Hugging Face config.json: a wrong field is named, never guessed around."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kvtier_operator.errors import InvalidInputError, Problem

# Names that multimodal configurations nest the language model under
# (vLLM, transformers_utils/config.py, get_hf_text_config; Qwen-Omni's thinker).
_TEXT_CONFIGS: Final = ("text_config", "llm_config", "language_config", "thinker_config")


class ConfigFields:
    """The language model's part of a config.json.

    Args:
        config: The parsed file.
        source: The file's name, for messages.
    """

    def __init__(self, config: Mapping[str, Any], source: str) -> None:
        self._root = config
        self._source = source
        text: Mapping[str, Any] = config
        while nested := next(
            (text[name] for name in _TEXT_CONFIGS if isinstance(text.get(name), Mapping)), None
        ):
            text = nested
        self._text = text

    def get(self, *names: str) -> object:
        """First of these fields that is not null: in the language model's part, then at the root."""
        for part in (self._text, self._root):
            for name in names:
                if (value := part.get(name)) is not None:
                    return value
        return None

    def has(self, *names: str) -> bool:
        """Whether any of these fields is there and not null."""
        return self.get(*names) is not None

    def optional_int(self, *names: str) -> int | None:
        """A whole number, 0 or more; None where no such field is there.

        Raises:
            InvalidInputError: The field holds something else.
        """
        value = self.get(*names)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value) or value < 0:
            raise self.wrong(names[0], f"got {value!r}, must be a whole number")
        return int(value)

    def int(self, *names: str) -> int:
        """A whole number, 1 or more.

        Raises:
            InvalidInputError: The field is missing, 0 or something else.
        """
        value = self.optional_int(*names)
        if not value:
            raise self.wrong(
                names[0], "missing or 0; give a config.json of a decoder model, or set spec.model.geometry"
            )
        return value

    def text(self, *names: str) -> str:
        """A string; empty where no such field is there."""
        value = self.get(*names)
        return value if isinstance(value, str) else ""

    def strings(self, *names: str) -> tuple[str, ...]:
        """A list of strings; empty where no such field is there."""
        value = self.get(*names)
        if isinstance(value, Sequence) and not isinstance(value, str):
            return tuple(str(item) for item in value)
        return ()

    def mapping(self, *names: str) -> Mapping[str, Any]:
        """A nested object; empty where no such field is there."""
        value = self.get(*names)
        return value if isinstance(value, Mapping) else {}

    def wrong(self, field: str, message: str) -> InvalidInputError:
        """The error that names a field of this file."""
        return InvalidInputError(self._source, Problem(field, message))
