"""Which extra to install for a package that is missing."""

import re
import tomllib
from pathlib import Path

import pytest

from kvtier_operator.extras import missing_package

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
BY_HAND = "uv pip install --override <(echo torch==2.13.0) 'kvtier[engine-cpu]'"


def how(module: str, wanted: str = "") -> str:
    line = missing_package(ModuleNotFoundError(name=f"{module}.part"), wanted)
    assert line is not None
    return line.partition(", which is not installed: ")[2]


@pytest.mark.parametrize(
    ("module", "wanted", "extra"),
    [
        ("msgspec", "", "scorer"),
        ("grpc", "", "scorer"),
        ("kopf", "", "operator"),
        ("liburing", "", "connector"),
        ("numpy", "", "connector"),
        ("numpy", "scorer", "scorer"),
        ("orjson", "operator", "operator"),
    ],
)
def test_who_has_a_package(module: str, wanted: str, extra: str) -> None:
    assert how(module, wanted) == f"pip install 'kvtier[{extra}]'"


@pytest.mark.parametrize(
    ("module", "wanted"), [("vllm", ""), ("numpy", "engine-cpu"), ("torch", "connector")]
)
def test_vllm_for_the_cpu_is_beyond_pip(module: str, wanted: str) -> None:
    assert how(module, wanted) == BY_HAND


def test_vllm_for_the_cpu_comes_with_the_torch_of_a_checkout() -> None:
    [torch] = [
        requirement
        for requirement in PROJECT["tool"]["uv"]["override-dependencies"]
        if requirement.startswith("torch")
    ]
    assert re.search(r"echo (\S+)\)", BY_HAND)[1] == torch  # type: ignore[index] # it is there


def test_a_module_of_ours_is_no_package_to_install() -> None:
    assert missing_package(ModuleNotFoundError(name="kvtier_operator.nothing")) is None
