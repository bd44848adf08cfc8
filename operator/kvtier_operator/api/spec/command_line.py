"""What spec.engine.extraArgs say, read once: options, objects in their values, TLS."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_operator.errors import InvalidInputError, Problem

FIELD: Final = "spec.engine.extraArgs"
CERTIFICATE: Final = "--ssl-certfile"
WHOLE: Final = frozenset({"-dc", "-dp", "--data-parallel-size", "--kv-cache-dtype", "--model"})
"""Options of vLLM that are the beginning of one that is asked for here, such as --diffusion-config, of -dcp,
and the size of data parallelism, of -dpl and --data-parallel-size-local."""
DEEPEST: Final = 32
"""Objects and lists within one another: as far as whoever reads them follows."""
SECOND_NAMES: Final[Mapping[str, str]] = {
    "-ac": "--attention-config",
    "-asc": "--api-server-count",
    "-cc": "--compilation-config",
    "-dc": "--diffusion-config",
    "-dcp": "--decode-context-parallel-size",
    "-dp": "--data-parallel-size",
    "-dpa": "--data-parallel-address",
    "-dpb": "--data-parallel-backend",
    "-dpe": "--data-parallel-external-lb",
    "-dph": "--data-parallel-hybrid-lb",
    "-dpl": "--data-parallel-size-local",
    "-dpm": "--data-parallel-multi-port-external-lb",
    "-dpn": "--data-parallel-rank",
    "-dpp": "--data-parallel-rpc-port",
    "-dpr": "--data-parallel-start-rank",
    "-ep": "--enable-expert-parallel",
    "-n": "--nnodes",
    "-pcp": "--prefill-context-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-q": "--quantization",
    "-r": "--node-rank",
    "-sc": "--speculative-config",
    "-tp": "--tensor-parallel-size",
}
"""Short names of options, and the long ones, by which all else here knows them."""
_ONE_LETTER: Final = 2
_LEVEL: Final = "--optimization-level"
_SWITCHES: Final = ("--enable-", "--disable-")
_SIZE: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<decimal>[kmgt])|(?P<whole>\d+)(?P<binary>[KMGT])")
_SIZE_WORD: Final = re.compile(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b")
_STRING: Final = re.compile(r'("(?:[^"\\]|\\.)*")')
_POWERS: Final = " kmgt"
_TOO_LARGE: Final = 1 << 63
_Words = Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=128)]


@dataclass(frozen=True, slots=True)
class Argument:
    """A word that begins with a dash, and what vLLM takes for its value."""

    position: int  # among all words, from 0
    name: str  # as vLLM compares it, or the long one of a short name: no dotted path, dashes for underscores
    spelling: str  # the same as it is written: of each vLLM makes one object of dotted fields
    path: str | None  # of `--option.path`; None for a whole option
    value: str | None  # from the same word or the next; None where neither has one

    @property
    def field(self) -> str:
        """Path of the item."""
        return f"{FIELD}[{self.position}]"

    def means(self, *options: str) -> bool:
        """Whether vLLM takes it for one of these, such as `--max-model-le=1` for `--max-model-len`.

        argparse takes the beginning of a name where only one option begins so. Where several do, vLLM ends at
        once, so nothing is lost if such a word is taken for one of them here.
        """
        if not self.name.strip("-") or self.name in WHOLE:
            return self.name in options
        return any(option.startswith(self.name) for option in options)

    def error(self, message: str) -> InvalidInputError:
        """The error that names this item."""
        return InvalidInputError("", Problem(self.field, message))


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Words of vLLM's command line, and its options; of one that is given several times the last counts."""

    words: tuple[str, ...] = ()
    arguments: tuple[Argument, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Reads the words."""
        after = (*self.words[1:], None)
        options = (place for place, word in enumerate(self.words) if word.startswith("-"))
        arguments = tuple(_argument(place, self.words[place], after[place]) for place in options)
        object.__setattr__(self, "arguments", arguments)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda words: cls(tuple(words)),
            handler.generate_schema(_Words),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda line: [*line.words]),
        )

    def last(self, *options: str) -> Argument | None:
        """The last that means one of these; None where none does."""
        return next((argument for argument in reversed(self.arguments) if argument.means(*options)), None)

    def field_path(self, *options: str) -> str:
        """Path of the last item that gives one of these options; of the whole list where none does."""
        last = self.last(*options)
        return FIELD if last is None else last.field

    def value(self, *options: str) -> str | None:
        """What is given to an option, by any of these names; None where nothing is."""
        values = (argument.value for argument in reversed(self.arguments) if argument.means(*options))
        return next((value for value in values if value is not None), None)

    def number(self, *options: str) -> int | None:
        """The same as a whole number, such as 8k; None also for what is none, as a check says."""
        value = self.value(*options)
        try:
            return None if value is None else whole_number(value)
        except ValueError:
            return None

    def amount(self, *options: str) -> float | None:
        """The same as a size that may have a fraction, such as of GiB, from 0 to as much as 64 bits count.

        None also for what vLLM refuses or cannot compute with, as a check says: less than 0, inf, nan.
        """
        try:
            amount = float(self.value(*options) or "nan")
        except ValueError:
            return None
        return min(amount, float(_TOO_LARGE)) if 0 <= amount < math.inf else None

    def switch(self, option: str) -> bool | None:
        """How an option that takes no value is set; None where vLLM is left to decide.

        0.33 also takes --disable-x for --no-enable-x, and --enable-x for --no-disable-x.
        """
        last = self.last(option, option.replace("--", "--no-", 1), *_opposite(option))
        return None if last is None else last.means(option)

    def is_on(self, option: str) -> bool:
        """Whether an option that takes no value is on: it and its `--no-` form may both be given."""
        return self.switch(option) or False

    @property
    def serves_tls(self) -> bool:
        """Whether vLLM has a certificate; without one it serves HTTP (uvicorn/config.py, is_ssl)."""
        return bool(self.value(CERTIFICATE))

    # Source: vllm/utils/argparse_utils.py (FlexibleArgumentParser.parse_args), 0.32 and 0.33.
    def json_object(self, option: str) -> Mapping[str, Any]:
        """What is given to an option that takes an object; empty where nothing is.

        vLLM writes the dotted fields of each spelling as one object behind all else, and the last one counts.

        Raises:
            InvalidInputError: It is no object, which vLLM would refuse.
        """
        whole: Mapping[str, Any] = {}
        dotted: dict[str, dict[str, Any]] = {}
        for argument in self.arguments:
            if not argument.means(option):
                continue
            if argument.path is None:
                whole = _object(argument, option)
            else:
                put_field(dotted.setdefault(argument.spelling, {}), argument.path, argument.value or "")
            if not _is_shallow([whole, *dotted.values()][-1]):
                raise argument.error(f"{option}: more than {DEEPEST} objects within one another")
        return [whole, *dotted.values()][-1]


def _opposite(option: str) -> tuple[str, ...]:
    for name, other in (_SWITCHES, _SWITCHES[::-1]):
        if option.startswith(name):
            return (option.replace(name, other, 1),)
    return ()


def _argument(position: int, word: str, after: str | None) -> Argument:
    if word.startswith("-O"):  # -O3 is --optimization-level 3, so what follows is a word of its own
        level = word[_ONE_LETTER:].removeprefix("=")
        if not level.startswith("-"):
            return Argument(position, _LEVEL, _LEVEL, None, level or after)
        word = level  # an option of its own, which vLLM reads like any other
    written, is_joined, joined = word.partition("=")
    spelling, has_path, path = written.partition(".")
    letter = SECOND_NAMES.get(word[:_ONE_LETTER])
    if letter and not has_path and not _begins_short(written):  # -n2 is -n 2
        return Argument(position, letter, word[:_ONE_LETTER], None, word[_ONE_LETTER:])
    spelling = spelling.replace("_", "-") if spelling.startswith("--") else spelling
    value = joined if is_joined else after
    return Argument(position, _long_name(spelling), spelling, path if has_path else None, value)


def _begins_short(name: str) -> list[str]:
    """Short names that begin so."""
    return [short for short in SECOND_NAMES if short.startswith(name)]


def _long_name(name: str) -> str:
    """The long name of a short one, or of the only one that begins so; any other as it is."""
    shorts = [name] if name in SECOND_NAMES else _begins_short(name) if len(name) > 1 else []
    return SECOND_NAMES[shorts[0]] if len(shorts) == 1 else name


def _object(argument: Argument, option: str) -> Mapping[str, Any]:
    try:
        value = parse_json(expand_sizes(argument.value or ""), deepest=DEEPEST)
    except MalformedError as error:
        raise argument.error(f"{option} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise argument.error(f"{option}: expected a JSON object such as {{}}")
    return value


# Source: vllm/utils/argparse_utils.py (FlexibleArgumentParser.parse_args, recursive_dict_update).
def put_field(fields: dict[str, Any], path: str, value: str) -> None:
    """Add what `--option.path value` gives; with a `+` behind the path, the value is items of a list."""
    *parents, last = path.removesuffix("+").split(".")
    for name in parents:
        inner = fields.get(name)
        fields[name] = inner if isinstance(inner, dict) else {}
        fields = fields[name]
    _add(fields, last, value.split(",") if path.endswith("+") else json_or_text(value))


def _add(fields: dict[str, Any], name: str, value: object) -> None:
    """Objects are merged and lists appended; anything else takes the place of what was there."""
    before = fields.get(name)
    if isinstance(before, dict) and isinstance(value, dict):
        for inner in value:
            _add(before, inner, value[inner])
    elif isinstance(before, list) and isinstance(value, list):
        fields[name] = [*before, *value]
    else:
        fields[name] = value


# Source: vllm/utils/argparse_utils.py (human_readable_int), 0.32 and 0.33.
def whole_number(text: str) -> int:
    """What vLLM reads for a whole number: 8000 of `8000`, `8_000` and `8k`, 8192 of `8K`.

    Raises:
        ValueError: It is none, or one that no engine can compute with.
    """
    size = _SIZE.fullmatch(text.strip())
    if size is None:
        number: float = int(text)
    elif size["whole"] is not None:
        number = int(size["whole"]) << (10 * _POWERS.index(size["binary"].lower()))
    else:
        number = float(size["number"]) * 1000 ** _POWERS.index(size["decimal"])
    if not -_TOO_LARGE < number < _TOO_LARGE:
        raise ValueError("beyond 64 bits")
    return int(number)


def whole_of(value: object) -> int | None:
    """A whole number that a field of an object has, as `10`, `1e10` or `"10"`; None where it has none."""
    if isinstance(value, str):
        try:
            return whole_number(value)
        except ValueError:
            return None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _TOO_LARGE else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def json_or_text(value: str) -> object:
    """What vLLM takes the value of a dotted field for: JSON, a number such as 8k, or else text."""
    try:
        return parse_json(value)
    except MalformedError:
        pass
    try:
        return whole_number(value)
    except ValueError:
        return value


# Source: vllm/engine/arg_utils.py (_expand_json_human_readable_numbers), 0.32 and 0.33.
def expand_sizes(text: str) -> str:
    """JSON with numbers such as 8k written out, as vLLM has them in objects of known fields."""
    parts = _STRING.split(text)  # strings, which stay as they are, are at the odd places
    return "".join(part if place % 2 else _SIZE_WORD.sub(_expand, part) for place, part in enumerate(parts))


def _expand(size: re.Match[str]) -> str:
    try:
        return str(whole_number(size.group()))
    except ValueError:
        return size.group()


def _is_shallow(value: object, levels: int = DEEPEST) -> bool:
    """Whether no more objects and lists than that are within one another."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in inner)
