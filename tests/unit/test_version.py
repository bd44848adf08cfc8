"""One version for all, from one file."""

import tomllib
from pathlib import Path

import pytest

from kvtier_common.version import KVTIER_VERSION, PAGES_URL, REPOSITORY_URL
from kvtier_operator.planning import images as published

ROOT = Path(__file__).parents[2]


def test_the_distribution_takes_it_from_there() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in settings["project"]
    assert settings["tool"]["hatch"]["version"]["path"] == "connector/kvtier_common/version.py"


def test_it_says_where_the_sources_are_and_the_pages() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert urls["Documentation"] == PAGES_URL
    assert {url.removeprefix(REPOSITORY_URL) for url in urls.values()} - {PAGES_URL} == {
        "",
        "/blob/main/CHANGELOG.md",
        "/issues",
    }


@pytest.mark.parametrize("version", [published.DOCTOR_VERSION, published.CONNECTOR_VERSION])
def test_images_of_engines_pods_are_no_newer_than_this_version(version: str) -> None:
    assert [int(part) for part in version.split(".")] <= [int(part) for part in KVTIER_VERSION.split(".")]
