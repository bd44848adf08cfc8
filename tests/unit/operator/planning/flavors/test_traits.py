"""Each flavour is one module; nothing else names it, but asks what is true of it, and how its picker ends."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.unit.operator.planning.objects.built import pod

import kvtier_operator
from kvtier_operator.api.spec.router import Flavor
from kvtier_operator.planning.flavors import flavor_traits
from kvtier_operator.planning.flavors.traits import FlavorTraits

PACKAGE = Path(*kvtier_operator.__path__)
TOLD = {"api/spec/router.py"}
"""Files that name flavours, beside their own: the API's rules."""


@pytest.mark.parametrize("flavor", Flavor)
def test_has_traits(flavor: Flavor) -> None:
    assert isinstance(flavor_traits(flavor), FlavorTraits)


def test_no_other_file_names_one() -> None:
    named_one = re.compile(rf"\bFlavor\.[A-Z]|([\"'])({'|'.join(Flavor)})\1")
    files = {
        str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")
    }
    match = {path for path, text in files.items() if named_one.search(text)}
    assert {path for path in match if not path.startswith("planning/flavors/")} == TOLD


OURS = {"spec.router.flavor": "builtin"}
LLM_D = {"spec.router.flavor": "llm-d"}
OLDER = {"spec.router.flavor": "llm-d", "spec.router.version": "0.9"}
GAIE = {"spec.router.flavor": "gaie"}


@pytest.mark.parametrize(
    ("flavor", "pre_stop_s", "args"),
    [
        (OURS, 10, ["--grace-period", "120"]),
        (LLM_D, 10, ["--drain-timeout=0s"]),
        (OLDER, 100, []),
        (GAIE, 100, []),
    ],
    ids=str,
)
def test_what_the_process_does_not_give_comes_before(
    flavor: Mapping[str, object], pre_stop_s: int, args: list[str]
) -> None:
    built = pod(flavor, "picker")
    [container] = built["containers"]
    assert built["terminationGracePeriodSeconds"] == 140
    assert container["lifecycle"]["preStop"] == {"sleep": {"seconds": pre_stop_s}}
    told = " ".join(container["args"])
    assert " ".join(args) in told
    assert ("--grace-period" in told, "--drain-timeout" in told) == (flavor is OURS, flavor is LLM_D)


def test_a_short_drain_is_upstreams_own() -> None:
    short = {**GAIE, "spec.engine.drainSeconds": 20}
    built = pod(short, "picker")
    assert built["containers"][0]["lifecycle"]["preStop"] == {"sleep": {"seconds": 10}}
    assert built["terminationGracePeriodSeconds"] == 40


def test_a_leader_of_0_10_lets_another_lead_before_it_stops_to_serve() -> None:
    built = pod({**LLM_D, "spec.router.replicas": 2}, "picker")
    [container] = built["containers"]
    assert "lifecycle" not in container
    assert "--drain-timeout=10s" in container["args"]
    assert built["terminationGracePeriodSeconds"] == 140
    for one in (OLDER, GAIE):
        [container] = pod({**one, "spec.router.replicas": 2}, "picker")["containers"]
        assert container["lifecycle"]["preStop"] == {"sleep": {"seconds": 100}}
