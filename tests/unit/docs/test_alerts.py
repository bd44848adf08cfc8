"""Each alert leads to a heading of its name, and no heading is of an alert that is gone."""

import re
from typing import Any, Final

from tests.cases.kvcachetier import DISK, REMOTE
from tests.cases.monitoring import alerts
from tests.unit.docs.pages import DOCS

from kvtier_common.version import PAGES_URL
from kvtier_operator.install.monitoring import prometheus_rule
from kvtier_operator.install.settings import Installation

PAGE: Final = DOCS / "operations" / "alerts.md"
HEADINGS: Final = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def _alerts() -> dict[str, Any]:
    [group] = prometheus_rule(Installation())["spec"]["groups"]
    return alerts(tiers={"disk": DISK, "remote": REMOTE}) | {rule["alert"]: rule for rule in group["rules"]}


def test_headings_are_the_alerts() -> None:
    assert sorted(HEADINGS) == sorted(_alerts())


def test_each_leads_to_its_heading() -> None:
    page = f"{PAGES_URL}/{PAGE.relative_to(DOCS).with_suffix('.html')}"
    # one word, in lower case: the anchor that a forge and Sphinx make of it
    led = {name: alert["annotations"]["runbook_url"] for name, alert in _alerts().items()}
    assert led == {name: f"{page}#{name.lower()}" for name in HEADINGS}


def test_each_heading_says_how_bad_it_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, alert in _alerts().items():
        assert f"## {name}\n\n*{alert['labels']['severity'].capitalize()}" in text
