"""One version for all: read at run time it would cost `kvtier plan` a search of the installed packages."""

import tomllib
from pathlib import Path

import yaml

from kvtier_operator.planning.pod.images import published
from kvtier_scorer.config.flavors import builtin

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_images_are_those_of_this_version() -> None:
    assert published.KVTIER_VERSION == VERSION


def test_the_doctor_is_no_newer_than_this_version() -> None:
    doctor = published.doctor().rpartition(":")[2]
    assert [int(part) for part in doctor.split(".")] <= [int(part) for part in VERSION.split(".")]


def test_the_builtin_picker_is_this_version_s() -> None:
    assert builtin.TESTED_VERSION == VERSION


def test_the_chart_brings_this_version() -> None:
    chart = yaml.safe_load((ROOT / "charts/tiered-prefix-cache/Chart.yaml").read_text())
    assert chart["appVersion"] == VERSION
