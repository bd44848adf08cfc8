"""Every dashboard by its JSON model: what Grafana would show wrongly, or not at all, and say nothing of."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

import pytest
from tests.cases.kvcachetier import DISK
from tests.cases.monitoring import grafana_dashboard, monitoring, shown_of_operator, targets
from tests.cases.promql import metrics_of, read
from tests.unit.docs.pages import DOCS

from kvtier_common.version import PAGES_URL

MODELS: Final[dict[str, dict[str, Any]]] = {
    "operator": shown_of_operator(),
    **{
        f"{backend}, {flavor}": grafana_dashboard(
            backend=backend, router={"flavor": flavor}, tiers={"disk": DISK}
        )
        for backend in ("KVTier", "Native", "LMCache", "LMCacheMP")
        for flavor in ("llm-d", "gaie", "builtin")
    },
}
# Others Grafana shows as text behind the number. Source: grafana, packages/grafana-data/src/valueFormats/
# categories.ts.
UNITS: Final = {"short", "percentunit", "s", "bytes", "Bps", "ops", "wps"}
COLUMNS: Final = 24
# What Grafana fills in by itself.
ITS_OWN: Final = {"__rate_interval", "__interval", "__range"}

every_model = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))


def test_grafana_finds_it_under_a_name_of_its_own() -> None:
    config_map = monitoring()["ConfigMap", "case-dashboard"]
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert list(config_map["data"]) == ["kvcachetier.default.case.json"]


def test_a_quantile_is_called_by_its_percentage() -> None:
    [first_token] = [
        panel for panel in grafana_dashboard()["panels"] if panel["title"] == "Time to first token"
    ]
    assert [target["legendFormat"] for target in first_token["targets"]] == ["p50", "p95"]


def test_panels_follow_backend_and_picker() -> None:
    titles = {panel["title"] for panel in grafana_dashboard()["panels"]}
    fewer = {
        panel["title"]
        for panel in grafana_dashboard(backend="LMCache", router={"flavor": "builtin"})["panels"]
    }
    assert titles - fewer == {
        "Bytes loaded and stored a second",
        "Prefill saved by the tiers, in this range",
        "Does the tier pay: tokens a second of loading, of computing",
        "CPU tier: bytes used and there",
        "CPU tier: chunks a second that left it",
        "Picker: share of a prompt it knows of",
    }


def test_a_disk_tier_is_shown_where_the_backend_tells_of_it() -> None:
    def titles(**spec: object) -> set[str]:
        return {panel["title"] for panel in grafana_dashboard(**spec)["panels"]}

    assert titles(tiers={"disk": DISK}) - titles() == {
        "Disk tier: bytes used and there",
        "Disk tier: bytes read and written a second",
        "Disk tier: chunks a second",
        "Disk tier: engines that serve from memory alone",
    }
    assert titles(backend="Native", tiers={"disk": DISK}) == titles(backend="Native")


@every_model
def test_prometheus_takes_every_query_and_a_legend_shows_what_it_answers(model: dict[str, Any]) -> None:
    for expression, legend in targets(model):
        assert read(expression, legend)


@every_model
def test_panels_are_in_the_grid_and_do_not_overlap(model: dict[str, Any]) -> None:
    places = [panel["gridPos"] for panel in model["panels"]]
    assert all(place["w"] > 0 < place["h"] and place["x"] + place["w"] <= COLUMNS for place in places)
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above


@every_model
def test_every_panel_has_a_number_a_title_and_a_unit(model: dict[str, Any]) -> None:
    panels = model["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    assert {panel["fieldConfig"]["defaults"]["unit"] for panel in panels} <= UNITS


@every_model
def test_every_target_has_a_letter_and_a_legend_of_its_own(model: dict[str, Any]) -> None:
    for panel in model["panels"]:
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == list("ABCDE")[: len(letters)] != []
        legends = [target["legendFormat"] for target in panel["targets"]]
        assert all(legends)
        assert len(set(legends)) == len(legends)


@every_model
def test_variables_are_those_that_are_used(model: dict[str, Any]) -> None:
    defined = [variable["name"] for variable in model["templating"]["list"]]
    assert len(set(defined)) == len(defined)
    assert set(_used(json.dumps(model))) - ITS_OWN == set(defined)


@every_model
def test_a_variable_asks_for_what_the_ones_before_it_leave(model: dict[str, Any]) -> None:
    before: set[str] = set()
    for variable in model["templating"]["list"]:
        assert set(_used(variable["query"])) <= before
        before.add(variable["name"])
        if variable["type"] == "query":
            [(series, label)] = re.findall(r"^label_values\((.+), (\w+)\)$", variable["query"])
            assert variable["datasource"]["uid"] == "${datasource}"
            assert read(series, frozenset({label}))


@every_model
def test_the_prometheus_is_the_one_that_was_chosen(model: dict[str, Any]) -> None:
    [chosen] = [each for each in model["templating"]["list"] if each["type"] == "datasource"]
    assert (chosen["name"], chosen["query"]) == ("datasource", "prometheus")
    asked = [place["datasource"] for panel in model["panels"] for place in (panel, *panel["targets"])]
    assert all(each == {"type": "prometheus", "uid": "${datasource}"} for each in asked)


@every_model
def test_links_lead_to_the_other_dashboards_and_to_a_heading(model: dict[str, Any]) -> None:
    others, page = model["links"]
    assert others["type"] == "dashboards"
    assert set(others["tags"]) <= set(model["tags"])
    path, _, anchor = page["url"].removeprefix(f"{PAGES_URL}/").partition("#")
    text = (DOCS / path).with_suffix(".md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert anchor in {heading.lower().replace(" ", "-") for heading in headings}


@every_model
def test_grafana_can_keep_it(model: dict[str, Any]) -> None:
    """Grafana makes a dashboard's address of 8 to 40 characters, and refuses others."""
    assert re.fullmatch(r"[\w-]{8,40}", model["uid"])
    assert model["title"]
    assert model["schemaVersion"] >= 39


def test_every_dashboard_has_an_address_and_a_title_of_its_own() -> None:
    models = [shown_of_operator(), grafana_dashboard()]
    assert len({model["uid"] for model in models}) == len({model["title"] for model in models}) == 2


def test_a_dashboard_asks_for_something() -> None:
    asked = [metrics_of(expression) for model in MODELS.values() for expression, _ in targets(model)]
    assert len(set().union(*asked)) > 30


def _used(text: str) -> Iterator[str]:
    """Names of variables: `$name` or `${name}`, but not a legend's `{{name}}`."""
    yield from re.findall(r"\$\{?(\w+)\}?", text)
