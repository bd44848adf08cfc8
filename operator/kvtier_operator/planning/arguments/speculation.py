"""What spec.engine.extraArgs say of speculative decoding, read as vLLM reads it.

Source: vllm/engine/arg_utils.py (--speculative-config and -sc, as JSON or as dotted fields, --spec-method,
--spec-model, --spec-tokens) and vllm/config/speculative.py (SpeculativeConfig), 0.32 and 0.33.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.json_text import parse_json
from kvtier_common.one_line import one_line
from kvtier_operator.api.spec.command_line import FIELD, Argument, CommandLine, put_field
from kvtier_operator.errors import InvalidInputError, Problem

_CONFIG: Final = "--speculative-config"
_SHORT_FORMS: Final = {
    "--spec-method": "method",
    "--spec-model": "model",
    "--spec-tokens": "num_speculative_tokens",
}
_NAMES_OF_MTP: Final = "_mtp"
_SUFFIX_TOKENS: Final = 24  # vLLM's default of suffix_decoding_max_tree_depth


class Method(StrEnum):
    """How tokens are drafted; vLLM's older names of MTP, such as `deepseek_mtp`, are one."""

    MTP = "mtp"
    EAGLE = "eagle"
    EAGLE3 = "eagle3"
    DFLASH = "dflash"
    DSPARK = "dspark"
    DRAFT_MODEL = "draft_model"
    MEDUSA = "medusa"
    MLP_SPECULATOR = "mlp_speculator"
    NGRAM = "ngram"
    NGRAM_GPU = "ngram_gpu"
    SUFFIX = "suffix"
    CUSTOM_CLASS = "custom_class"
    EXTRACT_HIDDEN_STATES = "extract_hidden_states"


WITHOUT_LAYERS: Final = frozenset(
    {
        Method.MEDUSA,
        Method.MLP_SPECULATOR,
        Method.NGRAM,
        Method.NGRAM_GPU,
        Method.SUFFIX,
        Method.CUSTOM_CLASS,
        Method.EXTRACT_HIDDEN_STATES,
    }
)
"""Methods that draft without layers that keep keys and values."""
GONE_FROM_NEWER: Final = frozenset({Method.MEDUSA, Method.MLP_SPECULATOR})
"""Methods of vLLM 0.32 that 0.33 no longer has."""
DROPS_LAST_BLOCK: Final = frozenset({Method.MTP, Method.EAGLE, Method.EAGLE3})
"""Methods whose hits end a block early (0.32: SpeculativeConfig.use_eagle_block_drop, for dflash and dspark
too; 0.33: needs_eagle_block_drop)."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """Speculative decoding as the resource asks for it."""

    method: Method  # how tokens are drafted
    # the draft's repository or folder; None where it is the model itself, or there is none
    model: str | None = None
    tokens: int | None = None  # tokens drafted at a time; None where the draft says it
    draft_ranks: int | None = None  # ranks of the draft; None for as many as the model has
    cache_dtype: str | None = None  # KV dtype of the draft's layers; None for the model's
    # item of spec.engine.extraArgs that gives each field of vLLM's configuration
    places: Mapping[str, str] = field(default_factory=dict, compare=False)

    def place(self, *names: str) -> str:
        """Path of the item that gives the first of these fields that is given; else of the last item."""
        return _place(self.places, *names)


def speculation(command_line: CommandLine) -> Speculation | None:
    """Speculative decoding that these arguments ask for; None where they do not.

    Raises:
        InvalidInputError: vLLM would not take the arguments.
    """
    config, places = _config(command_line)
    if not config:
        return None
    settings = {str(name).replace("-", "_"): value for name, value in config.items()}
    method = _method(settings, places)
    tokens = _count(settings, "num_speculative_tokens", places)
    if method is Method.SUFFIX and tokens is None:
        tokens = _count(settings, "suffix_decoding_max_tree_depth", places) or _SUFFIX_TOKENS
    return Speculation(
        method=method,
        model=_text(settings, "model", places),
        tokens=tokens,
        draft_ranks=_count(settings, "draft_tensor_parallel_size", places),
        cache_dtype=_text(settings, "kv_cache_dtype", places),
        places=places,
    )


def _config(command_line: CommandLine) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """The configuration, and the item that gives each of its fields; empty where there is none."""
    whole: Mapping[str, Any] = {}
    dotted: dict[str, dict[str, Any]] = {}
    short: dict[str, Any] = {}
    places: dict[str, str] = {}
    for argument in command_line.arguments:
        option = next(filter(argument.means, (_CONFIG, *_SHORT_FORMS)), None)
        if option in _SHORT_FORMS:
            short[_SHORT_FORMS[option]] = argument.value or ""
            places[_SHORT_FORMS[option]] = argument.field
        elif option is not None and argument.path is not None:
            inner = argument.path.partition(".")[0]
            put_field(dotted.setdefault(argument.spelling, {}), argument.path, argument.value or "")
            places[inner.replace("-", "_")] = argument.field
        elif option is not None:
            whole = _of_json(argument)
            places |= dict.fromkeys((str(name).replace("-", "_") for name in whole), argument.field)
    # vLLM writes dotted fields as one JSON for each spelling behind all else, and the last one counts
    config = dict([whole, *dotted.values()][-1])
    if twice := sorted(config.keys() & short.keys()):
        flag = next(option for option, name in _SHORT_FORMS.items() if name == twice[0])
        raise _error(
            places[twice[0]], f"{flag} and --speculative-config both give {twice[0]}; vLLM takes one"
        )
    return config | short, places


def _of_json(argument: Argument) -> Mapping[str, Any]:
    try:
        config = parse_json(argument.value or "")
    except MalformedError as error:
        raise argument.error(f"--speculative-config is no JSON: {error}") from error
    if config is not None and not isinstance(config, dict):
        raise argument.error("--speculative-config must be a JSON object")
    return config or {}


def _place(places: Mapping[str, str], *names: str) -> str:
    fields = [places[name] for name in names if name in places]
    return next(iter(fields or reversed([*places.values()])), FIELD)


def _method(settings: Mapping[str, Any], places: Mapping[str, str]) -> Method:
    """As vLLM finds it (SpeculativeConfig.__post_init__): the method, else the draft's name."""
    named, model = _text(settings, "method", places), _text(settings, "model", places) or ""
    if named is not None:
        name = "mtp" if named.endswith(_NAMES_OF_MTP) else "ngram" if named == "[ngram]" else named
        if name not in {str(method) for method in Method}:
            accepted = ", ".join(Method)
            raise _error(
                _place(places, "method"), f"speculative method {named!r} is none of vLLM's: {accepted}"
            )
        if name not in {Method.DRAFT_MODEL, Method.MEDUSA} or not model:
            return Method(name)
    elif model in {"ngram", "[ngram]"}:
        return Method.NGRAM
    elif not model:
        raise _error(
            _place(places), "speculative decoding needs a method or a draft model: give `method` or `model`"
        )
    elif _is_import_path(model):
        return Method.CUSTOM_CLASS
    return _by_name(model, Method(named or Method.DRAFT_MODEL))


def _by_name(model: str, otherwise: Method) -> Method:
    lower = model.lower()
    for part, method in (
        ("eagle-", Method.EAGLE),
        ("eagle3", Method.EAGLE3),
        ("dflash", Method.DFLASH),
        ("dspark", Method.DSPARK),
    ):
        if part in lower:
            return method
    return otherwise


def _is_import_path(model: str) -> bool:
    parts = model.split(".")
    return "/" not in model and len(parts) > 1 and all(part.isidentifier() for part in parts)


def _text(settings: Mapping[str, Any], name: str, places: Mapping[str, str]) -> str | None:
    value = settings.get(name)
    if value is None or isinstance(value, str):
        return value
    raise _error(places[name], f"{name} of the speculative configuration: got {value!r}, must be a string")


_MOST_TOKENS: Final = 2_147_483_647
"""More than any sequence has."""
_SHOWN_CHARACTERS: Final = 60


def _count(settings: Mapping[str, Any], name: str, places: Mapping[str, str]) -> int | None:
    value = settings.get(name)
    if value is None:
        return None
    text = str(value)
    is_number = not isinstance(value, bool) and text.isascii() and text.isdigit()
    if not is_number or not 0 < int(text) <= _MOST_TOKENS:
        raise _error(
            places[name],
            f"{name} of the speculative configuration: got {one_line(repr(value), _SHOWN_CHARACTERS)}, must "
            f"be a number from 1 to {_MOST_TOKENS:,}",
        )
    return int(text)


def _error(place: str, message: str) -> InvalidInputError:
    return InvalidInputError("", Problem(place, message))
