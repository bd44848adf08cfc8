"""A new alert is one more entry among the alerts, and a heading of its name, to which it leads."""

from typing import Final

import yaml
from tests.unit.additions.copied import Copied

_ALERT: Final = """    yield Alert(
        "KVCacheTierToyBroken", engines.gauge("toy_broken"), 5, "warning", "it", "Mend")
"""


def test_an_entry_and_a_heading(copy: Copied) -> None:
    alerts = "operator/kvtier_operator/planning/objects/monitoring/alerts.py"
    copy.insert(alerts, "    mode = spec.router.failure_mode.value\n", _ALERT)
    page = "docs/operations/alerts.md"
    copy.insert(page, "## KVCacheTierNoEngine\n", "## KVCacheTierToyBroken\n\n*Warning.* Mend it.\n\n")
    changed = copy.changed()

    minimal = (copy.root / "tests/unit/operator/golden/input/minimal.yaml").read_text(encoding="utf-8")
    copy.write("cr.yaml", minimal.rstrip("\n") + "\n  observability: {prometheusRule: true}\n")
    objects = yaml.safe_load_all(copy.kvtier("render", "--no-hub", "-f", "cr.yaml"))
    [rule] = [one for one in objects if one["kind"] == "PrometheusRule"]
    [toy] = [one for one in rule["spec"]["groups"][0]["rules"] if one["alert"] == "KVCacheTierToyBroken"]
    assert "toy_broken" in toy["expr"]
    assert toy["annotations"]["runbook_url"].endswith("alerts.html#kvcachetiertoybroken")
    assert changed == {alerts, page}
