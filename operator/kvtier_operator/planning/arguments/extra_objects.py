"""JSON objects in spec.engine.extraArgs, whole or as dotted fields (`--option.name=1`), as vLLM reads them.

Source: vllm/utils/argparse_utils.py (FlexibleArgumentParser.parse_args), 0.32 and 0.33.
"""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.arguments.extra_args import FIELD, means_option

DEEPEST: Final = 32
"""Objects and lists within one another: as far as whoever reads them follows."""


def object_of(extra_args: list[str], option: str) -> Mapping[str, Any]:
    """Return the object that is given to an option; empty where there is none.

    vLLM writes the dotted fields of each spelling as one object behind all else, and the last one counts.

    Raises:
        InvalidInputError: It is no object, which vLLM would refuse.
    """
    whole: Mapping[str, Any] = {}
    dotted: dict[str, dict[str, Any]] = {}
    for position, word in enumerate(extra_args):
        if not means_option(word, option):
            continue
        place = f"{FIELD}[{position}]"
        name, is_joined, joined = word.partition("=")
        value = joined if is_joined else "".join(extra_args[position + 1 : position + 2])
        spelling, is_dotted, path = name.partition(".")
        if is_dotted:
            _put(dotted.setdefault(spelling.replace("_", "-"), {}), path, value)
        else:
            whole = _object(value, option, place)
        found = [whole, *dotted.values()][-1]
        if not _is_shallow(found):
            raise _wrong(place, f"{option}: more than {DEEPEST} objects within one another")
    return [whole, *dotted.values()][-1]


def _object(value: str, option: str, place: str) -> Mapping[str, Any]:
    try:
        found = parse_json(value, deepest=DEEPEST)
    except MalformedError as error:
        raise _wrong(place, f"{option} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise _wrong(place, f"{option}: expected a JSON object such as {{}}")
    return found


def _put(fields: dict[str, Any], path: str, value: str) -> None:
    """Set what `--option.path value` sets; with a `+` behind the path, the value is items of a list."""
    *parents, last = path.removesuffix("+").split(".")
    for name in parents:
        inner = fields.get(name)
        fields[name] = inner if isinstance(inner, dict) else {}
        fields = fields[name]
    if path.endswith("+"):
        before = fields.get(last)
        fields[last] = [*(before if isinstance(before, list) else []), *value.split(",")]
        return
    try:
        fields[last] = parse_json(value)
    except MalformedError:
        fields[last] = value


def _is_shallow(value: object, levels: int = DEEPEST) -> bool:
    """Whether no more objects and lists than that are within one another."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inner)


def _wrong(place: str, message: str) -> InvalidInputError:
    return InvalidInputError("", Problem(place, message))
