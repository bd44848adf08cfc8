"""What a person reads when a field is wrong: pydantic's findings in plain words, one line each."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from kvtier_common.redis_protocol import SHARE_PATTERN
from kvtier_operator.api.formats import (
    DURATION_PATTERN,
    HTTP_URL_PATTERN,
    IMAGE_NAME_PATTERN,
    LABEL_PATTERN,
    LABEL_VALUE_PATTERN,
    OTLP_URL_PATTERN,
    PERCENTAGE_PATTERN,
    RETAINED_PATTERN,
    SUBDOMAIN_PATTERN,
)
from kvtier_operator.api.resource import KVCacheTier
from kvtier_operator.api.spec.kept import CONFIG_KEY_PATTERN
from kvtier_operator.api.spec.model import ADAPTER_PATTERN, KEY_PATTERN, SERVED_NAME_PATTERN
from kvtier_operator.api.spec.model_source import REVISION_PATTERN, SOURCE_PATTERN
from kvtier_operator.api.spec.pod import PATH_PATTERN, REQUEST_PATTERN, VARIABLE_PATTERN
from kvtier_operator.api.spec.prometheus import HEADER_PATTERN, HEADER_VALUE_PATTERN
from kvtier_operator.api.spec.router import (
    HOST_PATTERN,
    SUPPORTED_VERSIONS,
    URL_PATH_PATTERN,
    VERSION_PATTERN,
)
from kvtier_operator.api.spec.tiers.remote import STORE_URL_PATTERN
from kvtier_operator.errors import Problem

Location = tuple[int | str, ...]
_ENDS: Final = "with a letter or a digit at both ends"
FORMS: Final[Mapping[str, str]] = {
    LABEL_PATTERN: f"is not a valid name; write a-z, 0-9 and -, {_ENDS}",
    SUBDOMAIN_PATTERN: f"is not a valid name; write a-z, 0-9, - and ., {_ENDS} and beside each dot",
    LABEL_VALUE_PATTERN: f"is not a valid label value; write letters, digits and - _ ., {_ENDS}",
    HOST_PATTERN: "is not a host name; write it in lower case, with no scheme, port or path, such as "
    "llm.example.com or *.example.com",
    VERSION_PATTERN: "is not a version; write numbers with dots, such as 0.10 or 1.4.0",
    IMAGE_NAME_PATTERN: "is not an image; write HOST/NAME:TAG or HOST/NAME@sha256:DIGEST, with no scheme and no "
    "spaces and the name in lower case",
    SOURCE_PATTERN: "is not a source; write SCHEME://PLACE, with the scheme in lower case and no spaces, such as "
    "s3://BUCKET/FOLDER",
    REVISION_PATTERN: "is not a revision; write a branch, tag or commit in letters, digits and . _ + @ = -, with / between "
    "parts that begin with a letter, a digit or _",
    HTTP_URL_PATTERN: "is not a base URL; write http://HOST:PORT or https://HOST:PORT/PATH, with a name, four decimal numbers or a plain IPv6 "
    "address, the scheme in lower case, no password and no query",
    OTLP_URL_PATTERN: "is not a collector; write http://HOST:PORT, with a name, four decimal numbers or a plain IPv6 address, as "
    "upstream's pickers send in the clear alone",
    URL_PATH_PATTERN: "is not a path to pass; write /SEGMENT/SEGMENT in letters, digits and - . _ ~, with no "
    "slash at its end, no . or .. as a segment, no query and no %, or / for all paths",
    PATH_PATTERN: "is not an absolute path; begin it with /",
    VARIABLE_PATTERN: "is not a valid variable name; write letters, digits, _, - and ., no digit first, and its "
    "value into value",
    SERVED_NAME_PATTERN: "is not a valid model name; write letters, digits and . _ - : / @ +, a letter or digit first",
    ADAPTER_PATTERN: "is not an adapter; write ORG/ADAPTER of the Hub, or the folder's whole path in the container",
    KEY_PATTERN: "is not a valid key of a Secret; write letters, digits, -, _ and ., and one . at most at its beginning",
    CONFIG_KEY_PATTERN: "is not a valid key; write letters, digits, -, _ and ., and no . first",
    HEADER_PATTERN: "is not a valid header name; write letters, digits and -, a letter first",
    HEADER_VALUE_PATTERN: "is not a value that KEDA passes on; write letters, digits and . _ ~ : / @ | + -, with no space",
    STORE_URL_PATTERN: "is not a store URL; write redis://HOST:PORT, rediss://, valkey:// or valkeys://, "
    "several HOST:PORT with commas, mooncake://HOST:PORT or s3://BUCKET/PREFIX; user and password belong in "
    "the Secret of credentials.secretRef",
    SHARE_PATTERN: "is not a valid share name; write a-z, 0-9, -, . and /, with a letter or a digit at both ends",
    DURATION_PATTERN: "is not a duration; write a whole number with s, m or h, such as 90s, 30m or 1h",
    PERCENTAGE_PATTERN: "is not a whole percentage from 0% to 100%",
    RETAINED_PATTERN: "is not a whole percentage from 0% to 90%: the rest is for whatever comes",
    REQUEST_PATTERN: "is not a request of a claim; write REQUEST or REQUEST/SUBREQUEST in a-z, 0-9 and -",
}
"""By the regular expression that a text must match; pydantic and the API server quote that alone."""
# How close a name must be to be suggested (difflib's ratio): `capacty` is, `disk` for `cpu` is not.
_SIMILARITY: Final = 0.6
_VALUE_SIMILARITY: Final = 0.7
"""Of values: tpu is no gpu, and no cpu, whatever its letters say."""
_MAX_PLACES: Final = 3
_MAX_QUOTED_CHARACTERS: Final = 80
_UNITS: Final = {DURATION_PATTERN: "s", PERCENTAGE_PATTERN: "%", RETAINED_PATTERN: "%"}
"""What a number lacks to be what a pattern wants."""
_MAY_BE_SECRET: Final = (
    ("spec", "autoscaling", "prometheus"),
    ("spec", "engine", "env"),
    ("spec", "engine", "extraArgs"),
    ("spec", "engine", "podTemplate"),
    ("spec", "model", "fetcher"),
    ("spec", "model", "tokenSecretRef"),
    ("spec", "router", "gateway", "standalone", "podTemplate"),
    ("spec", "router", "podTemplate"),
    ("spec", "tiers", "remote"),
)
"""Where somebody may have typed a secret: HF_TOKEN=..., --api-key ..."""
_PICKER_VERSION: Final = ("spec", "router", "version")
_PREFIXES: Final = ("spec", "prefixes")
_IN_A_FILE: Final = "; put it into a ConfigMap and name that in fromConfigMap"
_DEVICE_TIER: Final = (
    "unknown field; the GPU's own cache is no tier of the resource: spec.engine.gpu or gpuMemory says how much memory the "
    "GPU has, spec.engine.kvCacheMemory sets the cache's size"
)
_ELSEWHERE: Final = {("spec", "tiers", name): _DEVICE_TIER for name in ("gpu", "device", "hbm", "vram")}
"""Names that mean something which is set in another way."""
_READ_AS_BOOLEAN: Final = '; YAML reads on, off, yes, no, y and n without quotes as true or false: quote what you wrote, as in "yes"'
# By pydantic's kind of error. `given` is the value, `a_given` says of what type it is, `described` is the field's
# description; the other names are pydantic's own.
_MESSAGES: Final = {
    "missing": "is required{described}",
    "string_type": "expected text, not {a_given}{quote_it}",
    "int_type": "expected a whole number, not {a_given}",
    "int_from_float": "expected a whole number, not {a_given}",
    "int_parsing_size": "expected a whole number of at most 64 bits, not {a_given}",
    "float_type": "expected a number, not {a_given}",
    "finite_number": "expected a number, not {a_given}",
    "bool_type": "expected true or false, not {a_given}",
    "list_type": "expected a list, not {a_given}",
    "dict_type": "expected a mapping, not {a_given}",
    "model_type": "expected a mapping, not {a_given}{its_fields}",
    "quantity_type": "expected a quantity such as 100Gi, not {a_given}{quote_fraction}",
    "quantity": "{reason}",
    "ip_block": "{given} is not an address block; write it as 10.129.0.0/23 or 2001:db8::/64",
    "node_requirements": "{reason}",
    "string_pattern_mismatch": "{given} {form}",
    "greater_than": "must be more than {gt}, not {given}",
    "greater_than_equal": "must be at least {ge}, not {given}",
    "less_than_equal": "must be at most {le}, not {given}",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters, not {length}{otherwise}",
    "too_long": "must have at most {max_length} entries, not {actual_length}{otherwise}",
    "too_short": "must have at least {min_length} entries, not {actual_length}",
}


def path_of(location: Location) -> str:
    """A location as Kubernetes writes it: list items and a map's keys in brackets.

    For instance `spec.engine.env[0].name` or `spec.engine.nodeSelector[kubernetes.io/arch]`.
    """
    path = ""
    for position, part in enumerate(location):
        parent = field_at(location[:position])
        in_map = parent is not None and get_origin(parent.annotation) is dict
        path += f"[{part}]" if in_map or isinstance(part, int) else f".{part}"
    return path.removeprefix(".")


def model_in(annotation: object) -> type[BaseModel] | None:
    """The model that a field's type holds, whether optional, in a list or alone; None where it holds none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for argument in get_args(annotation) if (model := model_in(argument))), None)


def field_at(location: Location) -> FieldInfo | None:
    """The field at a location; None for the resource itself and where the models do not say."""
    model: type[BaseModel] | None = KVCacheTier
    field: FieldInfo | None = None
    for part in location:
        if isinstance(part, int):
            continue
        if model is None:
            return None
        field = next((info for name, info in model.model_fields.items() if part in (info.alias, name)), None)
        model = model_in(field.annotation) if field else None
    return field


def names_at(location: Location) -> list[str]:
    """Names of the fields that the mapping at a location may have, in the order they are written."""
    field = field_at(location)
    model = model_in(field.annotation) if field else (None if location else KVCacheTier)
    return [info.alias or name for name, info in model.model_fields.items()] if model else []


def paths_named(name: str, model: type[BaseModel] = KVCacheTier, path: str = "") -> Iterator[str]:
    """Paths of all fields of that name that a user may write; `[]` stands for a list's items."""
    for attribute, info in model.model_fields.items():
        alias = info.alias or attribute
        below = f"{path}.{alias}".removeprefix(".")
        if alias == name:
            yield below
        inner = model_in(info.annotation)
        if inner and below != "status":
            yield from paths_named(name, inner, below + ("[]" if "list[" in str(info.annotation) else ""))


def complaint(error: ErrorDetails) -> Problem:
    """One finding of pydantic as a problem: the field's path, what is wrong and what to do."""
    kind, location, value = error["type"], error["loc"], error["input"]
    is_hidden = isinstance(value, str) and location[:3] in _MAY_BE_SECRET
    context: dict[str, Any] = error.get("ctx", {})
    if location and location[-1] == "[key]":
        location = location[:-2]
    if kind == "extra_forbidden":
        return Problem(path_of(location), unknown_field(location))
    if kind in ("enum", "literal_error"):
        choices = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        return Problem(path_of(location), _not_one_of(value, choices))
    if kind == "too_long" and context["max_length"] == 0:
        return Problem(path_of(location), "takes no settings here; write {}")
    field = field_at(location)
    if kind == "string_too_long" and (pattern := _broken_pattern(value, location)):
        # shortening it would not help
        kind, context = "string_pattern_mismatch", {"pattern": pattern}
    message = _MESSAGES.get(kind, "{given} is refused: {pydantic_message}").format(
        **context,
        given="the text" if is_hidden else show_value(value),
        a_given="text" if is_hidden else _with_type(value),
        length=len(value) if isinstance(value, str) else 0,
        described=f" ({field.description.split('. ')[0].rstrip('.')})" if field and field.description else "",
        otherwise=_IN_A_FILE if location[:2] == _PREFIXES and location[-1] in ("text", "tokens") else "",
        form=FORMS.get(context.get("pattern", ""), ""),
        quote_it=_quoting_advice(value, location),
        quote_fraction=_fraction_advice(value, location),
        its_fields=f"; its fields are {', '.join(known)}" if (known := names_at(location)) else "",
        pydantic_message=error["msg"],
    )
    return Problem(path_of(location), message)


def unknown_field(location: Location) -> str:
    """A field nobody knows: the nearest name here, the places it belongs to, or the names there are."""
    if location in _ELSEWHERE:
        return _ELSEWHERE[location]
    name, known = str(location[-1]), names_at(location[:-1])
    spelled = {alias.lower(): alias for alias in known}
    plain = name.lower().replace("_", "").replace("-", "")
    if near := get_close_matches(plain, spelled, 1, _SIMILARITY):
        return f"unknown field; did you mean {spelled[near[0]]}?"
    places = [*paths_named(name)]
    here = f"the fields here are {', '.join(known)}"
    if not 0 < len(places) <= _MAX_PLACES:
        return f"unknown field; {here}"
    if on_branch := [place for place in places if _is_on_branch(location, place)]:
        return f"unknown field here; it belongs at {' or '.join(on_branch)}"
    return f"unknown field here; there is {' and '.join(places)}; {here}"


def _is_on_branch(location: Location, place: str) -> bool:
    """Whether a place is above or below: spec.engine.env is no place for the environment of spec.router."""
    own = path_of(location[:-1]).split(".")
    parent = place.split(".")[:-1]
    return all(one == other for one, other in zip(own, parent, strict=False))


def _not_one_of(value: object, choices: list[str]) -> str:
    if isinstance(value, bool):
        return f"expected one of {', '.join(choices)}, not {_with_type(value)}"
    near = _near(str(value).lower(), {choice.lower(): choice for choice in choices})
    suggestion = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"{show_value(value)} is not one of {', '.join(choices)}{suggestion}"


def _pattern_at(location: Location) -> str:
    """The regular expression that the text at a location must match; empty where there is none."""
    field = field_at(location)
    return next(_patterns_in((field.annotation, *field.metadata)), "") if field else ""


def _patterns_in(parts: Iterable[object]) -> Iterator[str]:
    for part in parts:
        if isinstance(pattern := getattr(part, "pattern", None), str):
            yield pattern
        for metadata in getattr(part, "metadata", ()):
            yield from _patterns_in((metadata,))
        yield from _patterns_in(get_args(part))


def _broken_pattern(value: object, location: Location) -> str:
    """The one that a text does not match; empty where it does."""
    pattern = _pattern_at(location)
    is_broken = pattern in FORMS and isinstance(value, str) and re.search(pattern, value) is None
    return pattern if is_broken else ""


def _near(text: str, choices: Mapping[str, str]) -> list[str]:
    """Choices, by their lower case, that may be meant: a100-40 and a100-80 by a100, h100 by h100-sxm."""
    if text in choices:
        return [choices[text]]
    head = text.split("-", maxsplit=1)[0]
    for beginning in dict.fromkeys((text, head)):
        if head in choices and beginning == head:
            return [choices[head]]
        longer = [choice for name, choice in choices.items() if name.startswith(f"{beginning}-")]
        if beginning and 0 < len(longer) <= _MAX_PLACES:
            return longer
        if beginning == text and (near := get_close_matches(text, choices, 1, _VALUE_SIMILARITY)):
            return [choices[near[0]]]
    return []


def _quoting_advice(value: object, location: Location) -> str:
    if isinstance(value, bool):
        return _READ_AS_BOOLEAN
    if not isinstance(value, int | float):
        return ""
    if pattern := _broken_pattern(str(value), location):
        return _form_of_number(value, pattern)
    as_read, longer = f"{value}", f"{value}0"
    if isinstance(value, int) or (location == _PICKER_VERSION and as_read in SUPPORTED_VERSIONS):
        return f'; quote it: "{as_read}"'
    if location == _PICKER_VERSION and longer in SUPPORTED_VERSIONS:
        return f'; quote it: "{longer}", which YAML reads as {as_read} without quotes'
    return f'; quote it as it was written, "{as_read}" or "{longer}": YAML drops a 0 at the end of a number'


def _form_of_number(value: float, pattern: str) -> str:
    """What to write for a number that no quotes make right."""
    unit = _UNITS.get(pattern, "")
    is_part = unit == "%" and 0 < value < 1
    written = f"{value * 100 if is_part else value:g}{unit}"
    if re.search(pattern, written):
        return f"; write {written}"
    return f"; it must be {FORMS[pattern].removeprefix('is not ')}"


def _fraction_advice(value: object, location: Location) -> str:
    """A pod takes `cpu: 0.5`; the schema of a custom resource has no quantity that may be a fraction."""
    of_resources = not {"requests", "limits"}.isdisjoint(location)
    return f'; quote it: "{value}"' if of_resources and isinstance(value, float) else ""


def _with_type(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {show_value(value)}"
        case str():
            return f"the text {show_value(value)}"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return "nothing"


def show_value(value: object) -> str:
    """A value that somebody wrote, for a message; cut where it is long."""
    text = repr(value)
    return text if len(text) <= _MAX_QUOTED_CHARACTERS else f"{text[:_MAX_QUOTED_CHARACTERS]}..."
