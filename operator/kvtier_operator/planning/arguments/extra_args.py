"""What an engine's extraArgs say: options, objects in their values, TLS."""

from collections.abc import Mapping
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_operator.api.spec.engine import EngineSpec
from kvtier_operator.errors import InvalidInputError, Problem

FIELD: Final = "spec.engine.extraArgs"
WHOLE: Final = frozenset({"-dc", "-dp", "--data-parallel-size", "--kv-cache-dtype"})
"""Options of vLLM that are the beginning of one that is asked for here: --diffusion-config, of -dcp, and
the size of data parallelism, of -dpl and --data-parallel-size-local."""
_ONE_LETTER: Final = 2


def means_option(word: str, option: str) -> bool:
    """Tell whether vLLM takes a word for an option, such as `--max-model-le=1` for `--max-model-len`.

    argparse takes the beginning of a name where only one option begins so. Where several do, vLLM ends at
    once, so nothing is lost if such a word is taken for one of them here.

    Args:
        word: one of spec.engine.extraArgs.
        option: the whole name, with its dashes.
    """
    if word.startswith("-O"):  # -O3 is --optimization-level 3, so what follows is a word of its own
        word = word[2:].removeprefix("=")
    name = word.partition("=")[0].partition(".")[0]
    if name.startswith("--"):
        name = name.replace("_", "-")
    if not name.strip("-") or name in WHOLE:
        return name == option
    if len(option) == _ONE_LETTER and not name.startswith("--"):
        return name.startswith(option)  # -n2 is -n 2
    return option.startswith(name)


def value_of(extra_args: list[str], option: str) -> str | None:
    """Return the value that is given to an option; the last one counts."""
    value = None
    for position, word in enumerate(extra_args):
        if not means_option(word, option):
            continue
        _, is_joined, joined = word.partition("=")
        if is_joined:
            value = joined
        elif position + 1 < len(extra_args):
            value = extra_args[position + 1]
    return value


def field_path_of(extra_args: list[str], *options: str) -> str:
    """Path of the last item that gives one of these options; of the whole list where none does."""
    places = [
        f"{FIELD}[{position}]"
        for position, word in enumerate(extra_args)
        if any(means_option(word, option) for option in options)
    ]
    return places[-1] if places else FIELD


def is_on(extra_args: list[str], option: str) -> bool:
    """Tell whether an option that takes no value is on: it and its `--no-` form may both be given."""
    return switch_value(extra_args, option) or False


def switch_value(extra_args: list[str], option: str) -> bool | None:
    """Return how an option that takes no value is set; None where vLLM is left to decide."""
    on = None
    for word in extra_args:
        if means_option(word, option):
            on = True
        elif means_option(word, option.replace("--", "--no-", 1)):
            on = False
    return on


# Source: vllm/utils/argparse_utils.py (FlexibleArgumentParser.parse_args), 0.32 and 0.33.
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


CERTIFICATE: Final = "--ssl-certfile"
SKIP_VERIFY: Final = {"insecureSkipVerify": True}
"""Pods are asked by address, which no certificate names; as pickers and the kubelet do by themselves."""


def serves_tls(engine: EngineSpec) -> bool:
    """Tell whether vLLM has a certificate; without one it serves HTTP (uvicorn/config.py, is_ssl)."""
    return bool(value_of(engine.extra_args, CERTIFICATE))
