"""The command with none of its extras: everything that needs none works, and the rest says what it needs."""

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from kvtier_operator.cli.extras import missing_package
from kvtier_operator.cli.summaries import SUMMARIES

PROGRAM = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hidden())
sys.argv = ["kvtier", *{arguments!r}]
from kvtier_operator.cli.main import main
main()
"""
EXTRAS = (
    *(
        "aiohttp",
        "cryptography",
        "envoy",
        "grpc",
        "hpack",
        "huggingface_hub",
        "kopf",
        "kubernetes",
        "liburing",
    ),
    *("msgspec", "numba", "numpy", "orjson", "prometheus_client", "psutil", "pythonjsonlogger", "tokenizers"),
    *("torch", "uvloop", "vllm", "xxhash", "zmq"),
)
FIRST = Path(__file__).parents[4] / "docs" / "user-guide" / "examples" / "first.yaml"


def kvtier(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command where no extra is installed."""
    program = PROGRAM.format(hidden=EXTRAS, arguments=arguments)
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("group", [(), ("bench",)], ids=["kvtier", "bench"])
def test_help_needs_no_extra(group: tuple[str, ...]) -> None:
    done = kvtier(*group, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    for name in SUMMARIES["kvtier.bench" if group else "kvtier.commands"]:
        assert f"  {name} " in done.stdout


@pytest.mark.parametrize("arguments", [("plan",), ("render",)], ids=" ".join)
def test_planning_needs_no_extra(arguments: tuple[str, ...]) -> None:
    done = kvtier(*arguments, "-f", str(FIRST))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("run", "-f", str(FIRST)), "engine-cpu"),
        (("demo",), "engine-cpu"),
        (("picker",), "scorer"),
        (("simulate", "--trace", "nowhere"), "scorer"),
        (("bench", "connector"), "connector"),
        (("bench", "shared-prefix"), "scorer"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_what_needs_an_extra_says_so_in_a_line(command: tuple[str, ...], extra: str) -> None:
    done = kvtier(*command)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"which is not installed: pip install 'kvtier[{extra}]'")


@pytest.mark.parametrize("group", SUMMARIES)
def test_every_command_has_a_summary(group: str) -> None:
    assert {each.name for each in distribution("kvtier").entry_points.select(group=group)} == set(
        SUMMARIES[group]
    )


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("uvloop", "scorer"),
        ("grpc", "scorer"),
        ("kopf", "operator"),
        ("liburing", "connector"),
        ("vllm", "engine-cpu"),
    ],
)
def test_who_has_a_package(module: str, extra: str) -> None:
    line = missing_package(ModuleNotFoundError(name=f"{module}.part"))
    assert line is not None
    assert line.endswith(f"pip install 'kvtier[{extra}]'")


def test_a_module_of_ours_is_no_package_to_install() -> None:
    assert missing_package(ModuleNotFoundError(name="kvtier_operator.nothing")) is None
