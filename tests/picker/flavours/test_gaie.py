"""Every gaie configuration that kvtier renders is loaded by the real picker of its version, figures and all.

These pickers decode the document strictly and plugins' parameters leniently: a parameter that a version does
not know is left out in silence. So what its plugins say they were made with is compared too.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.harness.programs.tools import Say
from tests.cluster.harness.providers.provider import Cluster
from tests.picker.flavours.inputs import EXAMPLE, INPUTS
from tests.picker.harness.fleet import Fleet
from tests.picker.harness.pickers.gaie import PROGRAMS, Start, running_gaie
from tests.picker.harness.pool import Pool, made_pool

from kvtier_scorer.config.flavors import picker_config
from kvtier_scorer.config.model import PickerInput

# A plugin's own line once it is made, with the parameters it works with, as these versions log it.
_MADE = re.compile(r'Prefix(?:CachePlugin| PrepareData) initialized.*"config": ?(\{[^}]*\})')
_LOGS_WHAT_WAS_MADE = 2


# Earlier pickers take minutes to build, and how they are configured is pinned by golden files.
VERSIONS = [pytest.param(program, marks=[] if program == "1.5" else pytest.mark.long) for program in PROGRAMS]


@pytest.fixture(scope="module")
def pool(control_plane: Cluster, fleet: Fleet) -> Iterator[Pool]:
    with made_pool(control_plane, "flavours", fleet.port, fleet.ips) as made:
        yield made


def rendered(version: str, asked: PickerInput) -> str:
    return picker_config("gaie", replace(asked, version=version)).text


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("asked", INPUTS.values(), ids=INPUTS)
def test_rendered_configuration_is_loaded(  # noqa: PLR0913, PLR0917 - fixtures
    version: str, asked: PickerInput, pool: Pool, fleet: Fleet, tmp_path: Path, say: Say
) -> None:
    text = rendered(version, asked)
    start = Start(version, text, verbosity=_LOGS_WHAT_WAS_MADE)
    with running_gaie(start, pool, len(fleet.ips), tmp_path, say) as picker:
        parameters = prefix_parameters(text)
        assert made_with(picker.process.log, parameters) == parameters


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("schedulingProfile", []),
        ("plugins", [{"type": "queue-scorer", "weight": 1}]),
        ("plugins", [{"type": "queue-depth-scorer"}]),
        ("schedulingProfiles", [{"name": "default", "plugins": [{"pluginRef": "none-of-that-name"}]}]),
        ("apiVersion", "inference.networking.x-k8s.io/v1"),
    ],
)
def test_a_corrupted_configuration_is_refused(  # noqa: PLR0913, PLR0917 - fixtures
    version: str, field: str, change: object, pool: Pool, tmp_path: Path, say: Say
) -> None:
    document = yaml.safe_load(rendered(version, EXAMPLE))
    start = Start(version, yaml.safe_dump(document | {field: change}))
    with pytest.raises(RuntimeError, match="ended with"), running_gaie(start, pool, 3, tmp_path, say):
        pass


def prefix_parameters(text: str) -> list[dict[str, Any]]:
    """Parameters of the plugins that hold a prefix index, as they are rendered."""
    plugins = yaml.safe_load(text)["plugins"]
    return [plugin["parameters"] for plugin in plugins if "autoTune" in plugin.get("parameters", {})]


def made_with(log: Path, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the picker's log says that these plugins were made with, of the parameters that were asked for."""
    made = [json.loads(word) for word in _MADE.findall(log.read_text())]
    return [{name: one.get(name) for name in parameters} for one, parameters in zip(made, asked, strict=True)]
