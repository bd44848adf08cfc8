"""A new picker flavour is its member of the enum and two files: its configuration, and what is true of it."""

from typing import Final

from tests.unit.additions.copied import Copied

_CONFIGURATION: Final = """
from kvtier_scorer.config.flavors.document import per_tier_config
from kvtier_scorer.config.model import PickerConfig, PickerInput
from kvtier_scorer.config.model import UPSTREAM_SCORERS

SCORERS = UPSTREAM_SCORERS


def config(given: PickerInput) -> PickerConfig:
    return per_tier_config(given, given.version or "7.0.0", "toys/v1", lambda tier: {"tier": tier.name})
"""
_TRAITS: Final = """
from kvtier_operator.planning.flavors.traits import FlavorTraits

TRAITS = FlavorTraits(title="the toy", image="toys/picker:{version}")
"""
_ROUTER: Final = """
  router: {flavor: toy, replicas: 2}
  observability: {prometheusRule: true, dashboard: true}
"""


def test_three_files(copy: Copied) -> None:
    configuration = "scorer/kvtier_scorer/config/flavors/toy.py"
    copy.write(configuration, _CONFIGURATION)
    traits = "operator/kvtier_operator/planning/flavors/toy.py"
    copy.write(traits, _TRAITS)
    api = "operator/kvtier_operator/api/spec/router.py"
    copy.insert(api, '    BUILTIN = "builtin"', '    TOY = "toy"\n')
    changed = copy.changed()

    several_engines = copy.root / "tests/unit/operator/golden/input/data-parallel.yaml"
    copy.write("cr.yaml", several_engines.read_text(encoding="utf-8").rstrip("\n") + _ROUTER)
    rendered = copy.kvtier("render", "--no-hub", "-f", "cr.yaml")
    assert "image: toys/picker:7.0.0" in rendered
    assert "apiVersion: toys/v1" in rendered
    named = copy.kvtier("render", "--no-hub", "--image", "pickerToy=mine/toy:1", "-f", "cr.yaml")
    assert "image: mine/toy:1" in named
    assert changed == {configuration, traits, api}
