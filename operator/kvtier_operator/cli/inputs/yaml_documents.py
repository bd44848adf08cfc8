"""YAML as kubectl reads it, which is not quite as PyYAML does.

kubectl turns YAML into JSON with sigs.k8s.io/yaml, whose resolver is go-yaml v2's. Beside YAML 1.1 as PyYAML
has it, that one takes `y` and `n` for booleans and `1e9` for a number, and leaves dates and base-60 numbers
as text (`goyaml.v2/resolve.go`). A local command must not read a file differently from the cluster.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.error import MarkedYAMLError
from yaml.events import CollectionEndEvent, CollectionStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode

from kvtier_operator.errors import InvalidInputError, Problem

# The C parser is ten times as fast; a PyYAML built without libyaml lacks it.
_SafeLoader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Deeper than any Kubernetes object.
_MAX_DEPTH: Final = 100
# Go's JSON writes larger floats with an exponent, which makes them no integers for the API server.
_LARGEST_WRITTEN_OUT: Final = 1e21


class _Loader(_SafeLoader):  # type: ignore[misc] # chosen at run time
    """Safe YAML with go-yaml v2's idea of booleans and numbers, and without duplicate keys."""

    yaml_implicit_resolvers: Final[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}
    bool_values: Final = {**SafeConstructor.bool_values, "y": True, "n": False}

    def construct_mapping(self, node: Node, deep: bool = False) -> dict[str, Any]:
        """A mapping with text keys, each once."""
        if not isinstance(node, MappingNode):
            raise ConstructorError(None, None, "expected a mapping", node.start_mark)
        own = [self._key(key) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        for position, key in enumerate(own):
            if key in own[:position]:
                mark = [each for each, _ in node.value if each.tag != "tag:yaml.org,2002:merge"][
                    position
                ].start_mark
                raise ConstructorError(None, None, f"the key {key!r} is there twice; keep one", mark)
        self.flatten_mapping(node)
        return {self._key(key): self.construct_object(value, deep=deep) for key, value in node.value}

    def _key(self, node: Node) -> str:
        value = self.construct_object(node, deep=True)
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is None or isinstance(value, list | dict):
            raise ConstructorError(None, None, "a key must be text", node.start_mark)
        return str(value)

    def construct_number(self, node: ScalarNode) -> int | float:
        """A number as JSON has it: 4.0 is 4, and infinities and not-a-number are none."""
        text = self.construct_scalar(node).replace("_", "")
        value = (
            float(text) if not text.lower().lstrip("+-").startswith(".") or text[-1].isdigit() else math.inf
        )
        if not math.isfinite(value):
            raise ConstructorError(None, None, f"{text} is not a number that JSON has", node.start_mark)
        return int(value) if value.is_integer() and abs(value) < _LARGEST_WRITTEN_OUT else value

    def construct_go_integer(self, node: ScalarNode) -> int:
        """An integer with Go's prefixes: 0x, 0b, 0o, and a leading 0 for octal."""
        text = self.construct_scalar(node).replace("_", "").lower()
        sign, digits = (-1 if text.startswith("-") else 1), text.lstrip("+-")
        return sign * int(re.sub(r"^0(?=[0-7]+$)", "0o", digits), 0)


for _tag, _pattern, _first in (
    (
        "bool",
        r"y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        "yYnNtTfFoO",
    ),
    ("int", r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_go_integer)


def read_documents(text: str | bytes, source: str) -> Iterator[object]:
    """The documents of a YAML or JSON stream, empty ones left out, as plain Python values that JSON has too.

    Raises:
        InvalidInputError: The stream is not YAML; the message has line and column.
    """
    try:
        _check_depth(text)
        yield from (document for document in yaml.load_all(text, Loader=_Loader) if document is not None)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = " ".join(str(error.problem or error.context or "").split())
        raise InvalidInputError(source, Problem("", f"not YAML: {at}{problem}")) from error
    except yaml.YAMLError as error:
        raise InvalidInputError(source, Problem("", f"not YAML: {' '.join(str(error).split())}")) from error
    except (KeyError, ValueError) as error:
        raise InvalidInputError(
            source, Problem("", f"not YAML: a value does not fit its tag: {error}")
        ) from error


def _check_depth(text: str | bytes) -> None:
    """The C parser builds documents by recursion without a bound of its own, and would end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise yaml.YAMLError(f"more than {_MAX_DEPTH} levels deep")
