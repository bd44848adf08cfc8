"""One package knows what vLLM has not promised: a new minor is a look at that, and two lists."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

import kvtier_connector
from kvtier_connector.supported import TESTED_RELEASES

_PACKAGE: Final = Path(kvtier_connector.__file__).parent
_UPSTREAM: Final = _PACKAGE / "vllm" / "upstream"
_LISTS_MINORS: Final = {"supported.py"}

_V1: Final = "vllm.distributed.kv_transfer.kv_connector.v1"
_INTERFACES: Final = {
    "vllm",
    "vllm.config",
    "vllm.platforms",
    _V1,
    f"{_V1}.base",
    "vllm.forward_context",
    "vllm.v1.core.kv_cache_manager",
    "vllm.v1.core.sched.output",
    "vllm.v1.kv_cache_interface",
    "vllm.v1.kv_offload.base",
    "vllm.v1.kv_offload.config",
    "vllm.v1.kv_offload.tiering.backpressure",
    "vllm.v1.kv_offload.tiering.base",
    "vllm.v1.metrics.cache_hit_source",
    "vllm.v1.outputs",
    "vllm.v1.request",
}
_OF_APPLICATIONS: Final = {"vllm.sampling_params", "vllm.utils.argparse_utils"}
"""What else vLLM's own examples import; benchmarks do."""


def imported(source: str) -> Iterator[tuple[str, str]]:
    """Each module that a source imports, wherever that stands, and the name that it takes from there."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def unpromised(source: str) -> list[str]:
    """What a source imports of vLLM's inner parts."""
    return [
        f"{module}.{name}".rstrip(".")
        for module, name in imported(source)
        if module.split(".")[0] == "vllm"
        and (module not in _INTERFACES | _OF_APPLICATIONS or (name.startswith("_") and name != "__version__"))
    ]


def minors(source: str) -> list[str]:
    """The minors of vLLM that a source names."""
    return [minor for minor in TESTED_RELEASES if re.search(rf"(?<![\d.]){re.escape(minor)}(?!\d)", source)]


def found_in_modules(find: Callable[[str], list[str]], besides: set[str]) -> dict[str, list[str]]:
    """What is found in the connector's modules outside the package, by file."""
    files = {str(file.relative_to(_PACKAGE)): file for file in _PACKAGE.rglob("*.py")}
    found = {
        name: find(file.read_text(encoding="utf-8"))
        for name, file in files.items()
        if _UPSTREAM not in file.parents and name not in besides
    }
    return {name: each for name, each in found.items() if each}


def test_modules_build_on_what_vllm_offers() -> None:
    assert found_in_modules(unpromised, besides=set()) == {}


def test_modules_name_no_minor() -> None:
    assert found_in_modules(minors, besides=_LISTS_MINORS) == {}


def test_what_is_offered_is_written_down() -> None:
    written = ast.get_docstring(ast.parse((_UPSTREAM / "__init__.py").read_text(encoding="utf-8"))) or ""
    told = {module for module in _INTERFACES if f"`{module}`" in written}
    short = {"vllm.v1.kv_offload.config", "vllm.v1.kv_offload.tiering.backpressure", f"{_V1}.base"}
    assert _INTERFACES - told == short, "beside the module of the same folder"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from vllm.v1.kv_offload.base import OffloadingSpec", []),
        ("from vllm import LLM, __version__", []),
        ("from vllm import _custom_ops", ["vllm._custom_ops"]),
        ("def f():\n    import vllm.v1.core.sched.scheduler", ["vllm.v1.core.sched.scheduler"]),
        (f"from {_V1}.offloading.common import TransferJob", [f"{_V1}.offloading.common.TransferJob"]),
    ],
)
def test_reaches_are_found(source: str, found: list[str]) -> None:
    assert unpromised(source) == found


def test_minors_are_found() -> None:
    newest = list(TESTED_RELEASES)[-1]
    assert minors(f"# since vLLM {newest}.1, {newest}7 or 1.{newest}") == [newest]
    assert minors(f"# {newest}7 or 1.{newest}") == []
