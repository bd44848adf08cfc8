"""Which extra to install for a package that is missing."""

import json
import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

from kvtier_operator import extras
from kvtier_operator.extras import missing_package

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
BEYOND_PIP = "uv pip install --override <(echo torch==2.13.0)"


@pytest.fixture(autouse=True)
def origin(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Where kvtier was installed from, as pip and uv note it; nothing for an index."""
    noted: dict[str, Any] = {}
    whole = distribution("kvtier")

    class Noted:
        requires = whole.requires

        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return json.dumps(noted) if noted else None

    monkeypatch.setattr(extras, "distribution", lambda _name: Noted())
    return noted


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
    assert how(module, wanted) == f"{BEYOND_PIP} 'kvtier[engine-cpu]'"


def test_vllm_for_the_cpu_comes_with_the_torch_of_a_checkout() -> None:
    [torch] = [
        requirement
        for requirement in PROJECT["tool"]["uv"]["override-dependencies"]
        if requirement.startswith("torch")
    ]
    assert re.search(r"echo (\S+)\)", BEYOND_PIP)[1] == torch  # type: ignore[index] # it is there


@pytest.mark.parametrize(("editable", "option"), [({}, ""), ({"editable": True}, "--editable ")])
def test_a_checkout_is_named_while_it_is_there(
    origin: dict[str, Any], tmp_path: Path, editable: dict[str, bool], option: str
) -> None:
    checkout = tmp_path / "my kvtier"
    checkout.mkdir()
    origin.update(url=checkout.as_uri(), dir_info=editable)
    assert how("kopf") == "pip install 'kvtier[operator]'"
    (checkout / "pyproject.toml").touch()
    assert how("kopf") == f"pip install {option}'{checkout}[operator]'"
    assert how("vllm") == f"{BEYOND_PIP} {option}'{checkout}[engine-cpu]'"


def test_a_wheel_may_be_gone(origin: dict[str, Any], tmp_path: Path) -> None:
    origin.update(url=(tmp_path / "kvtier.whl").as_uri(), archive_info={})
    assert how("kopf") == "pip install 'kvtier[operator]'"


def test_a_module_of_ours_is_no_package_to_install() -> None:
    assert missing_package(ModuleNotFoundError(name="kvtier_operator.nothing")) is None
