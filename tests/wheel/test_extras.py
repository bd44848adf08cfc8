"""Each extra has what its package needs, and its commands get as far as what they are given."""

from collections.abc import Callable

import pytest
from tests.wheel.environment import Environment

# vLLM is not kvtier's to bring, and what measures it comes with it.
EVERYTHING = """
import sys
from importlib import import_module
from pkgutil import walk_packages

for name in sys.argv[1:]:
    package = import_module(name)
    for module in walk_packages(getattr(package, '__path__', ()), f"{name}."):
        import_module(module.name)
"""
PACKAGES = {
    "operator": (
        "kvtier_operator.reconcile",
        "kvtier_operator.planning",
        "kvtier_operator.api",
        "kvtier_common",
    ),
    "scorer": ("kvtier_scorer", "kvtier_common"),
    "connector": ("kvtier_connector.core", "kvtier_connector.config", "kvtier_common.metrics.text"),
}


@pytest.mark.parametrize("extra", PACKAGES)
def test_every_module_can_be_imported(with_extra: Callable[[str], Environment], extra: str) -> None:
    done = with_extra(extra).run("python", "-c", EVERYTHING, *PACKAGES[extra])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("extra", "typed", "said"),
    [
        ("operator", "kvtier-operator", "kvtier-operator: no cluster to talk to: there is no "),
        ("operator", "kvtier status any", "kvtier: no cluster to talk to: there is no "),
        ("scorer", "kvtier picker --config-file nowhere", "kvtier picker: --config-file: nowhere: "),
        (
            "scorer",
            "kvtier simulate --trace nowhere",
            "nowhere: there is no such file; give the path of a trace",
        ),
        ("scorer", "kvtier bench shared-prefix --url http://127.0.0.1:9", "the server does not answer"),
        (
            "connector",
            "kvtier bench connector --only ttft",
            "which is not installed: uv pip install --override <(echo torch==2.13.0) 'kvtier[engine-cpu]'",
        ),
    ],
)
def test_its_commands_say_what_is_wrong_in_a_line(
    with_extra: Callable[[str], Environment], extra: str, typed: str, said: str
) -> None:
    done = with_extra(extra).run(*typed.split())
    assert done.returncode in {1, 2, 3}
    (line,) = done.stderr.splitlines()
    assert said in line
