from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.cases.monitoring import grafana_dashboard, shown_of_operator
from tests.pictures.drawing.page import page
from tests.pictures.drawing.panel import Line
from tests.pictures.drawing.units import text, top

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("model", [grafana_dashboard(), shown_of_operator()], ids=["resource", "operator"])
def test_every_panel_is_drawn_with_its_legend(model: dict[str, Any]) -> None:
    lines = {
        panel["id"]: [Line(f"series <{panel['id']}>", ((0.0, 0.0), (60.0, 2.0)))]
        for panel in model["panels"][1:]
    }
    drawn = ET.fromstring(page(model, lines, 60.0))  # noqa: S314 - our own
    words = [each.text for each in drawn.iter(f"{SVG}text")]
    for panel in model["panels"]:
        assert panel["title"] in words
        has_legend = panel["type"] != "stat" and panel is not model["panels"][0]
        assert (f"series <{panel['id']}>" in words) is has_legend
    numbers = [each.text for each in drawn.iter(f"{SVG}text") if each.get("class") == "number"]
    assert len(numbers) == sum(panel["type"] == "stat" for panel in model["panels"])
    assert words.count("No data") == 1
    assert max(word.count("{{") for word in words if word) == 0


def test_a_line_stays_in_its_panel() -> None:
    model = shown_of_operator()
    first = model["panels"][0]
    drawn = ET.fromstring(page(model, {first["id"]: [Line("a", ((0.0, 0.0), (60.0, 7.0)))]}, 60.0))  # noqa: S314 - our own
    [path] = [each.get("d", "") for each in drawn.iter(f"{SVG}path") if each.get("stroke")]
    box = next(each for each in drawn.iter(f"{SVG}rect") if each.get("class") == "panel")
    left, above, width, height = (float(box.get(name, "")) for name in ("x", "y", "width", "height"))
    for point in path.removeprefix("M").split("L"):
        x, y = map(float, point.split())
        assert left < x < left + width
        assert above < y < above + height


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (0.25, "s", "250 ms"),
        (4.0, "s", "4 s"),
        (0.5, "percentunit", "50%"),
        (3 * 2**29, "bytes", "1.5 GiB"),
        (2_000_000, "Bps", "2 MB/s"),
        (1500, "short", "1.5K"),
        (0, "short", "0"),
    ],
)
def test_numbers_have_their_unit(value: float, unit: str, written: str) -> None:
    assert text(value, unit) == written


@pytest.mark.parametrize(
    ("largest", "unit", "end"),
    [
        (0, "s", 1),
        (0.7, "percentunit", 0.8),
        (1.1, "short", 2),
        (900, "short", 1000),
        (9e-4, "s", 1e-3),
        (5, "bytes", 8),
    ],
)
def test_an_axis_ends_at_a_round_number(largest: float, unit: str, end: float) -> None:
    assert top(largest, unit) == pytest.approx(end)
