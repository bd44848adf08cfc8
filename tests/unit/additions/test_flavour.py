"""A new picker flavour is a file, its line in the list of flavours, its member of the enum and its image."""

from typing import Final

from tests.unit.additions.copied import Copied

PACKAGE: Final = "kvtier_scorer.config.flavors"
_FLAVOUR: Final = """
from kvtier_scorer.config.flavors.per_tier import per_tier_config
from kvtier_scorer.config.model import PickerConfig, PickerInput


def toy_config(given: PickerInput) -> PickerConfig:
    return per_tier_config(given, given.version or "7.0.0", "toys/v1", lambda tier: {"tier": tier.name})
"""
_ROUTER: Final = """
  router: {flavor: toy, replicas: 2}
  observability: {prometheusRule: true, dashboard: true}
"""


def test_four_files(copy: Copied) -> None:
    flavors = "scorer/kvtier_scorer/config/flavors"
    copy.write(f"{flavors}/toy.py", _FLAVOUR)
    registry = f"{flavors}/__init__.py"
    copy.insert(registry, f"from {PACKAGE}.llm_d import", f"from {PACKAGE}.toy import toy_config\n")
    copy.insert(registry, '    "builtin": ', '    "toy": toy_config,\n')
    api = "operator/kvtier_operator/api/router.py"
    copy.insert(api, '    BUILTIN = "builtin"', '    TOY = "toy"\n')
    images = "operator/kvtier_operator/planning/pod/images.py"
    copy.insert(images, "    PICKER_BUILTIN = ", '    PICKER_TOY = "pickerToy"\n')
    copy.insert(images, "    Flavor.BUILTIN: ImageName", "    Flavor.TOY: ImageName.PICKER_TOY,\n")
    copy.insert(images, '        Flavor.BUILTIN: f"', '        Flavor.TOY: f"toys/picker:{full}",\n')
    changed = copy.changed()

    several_engines = copy.root / "tests/unit/operator/golden/input/data-parallel.yaml"
    copy.write("cr.yaml", several_engines.read_text(encoding="utf-8").rstrip("\n") + _ROUTER)
    rendered = copy.kvtier("render", "--no-hub", "-f", "cr.yaml")
    assert "image: toys/picker:7.0.0" in rendered
    assert "apiVersion: toys/v1" in rendered
    assert changed == {f"{flavors}/toy.py", registry, api, images}
