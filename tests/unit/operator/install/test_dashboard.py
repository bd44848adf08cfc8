from tests.cases.monitoring import shown_of_operator, targets
from tests.cases.promql import all_read, missing_series, registered_series

from kvtier_operator.install.monitoring import dashboard
from kvtier_operator.install.settings import Installation
from kvtier_operator.reconcile.observability import REGISTRY

EXPORTED = registered_series(REGISTRY)
ASKED = all_read(expression for expression, _ in targets(shown_of_operator()))


def test_grafana_finds_it_beside_the_operator() -> None:
    metadata = dashboard(Installation(name="op", namespace="system"))["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("op-dashboard", "system")
    assert metadata["labels"]["grafana_dashboard"] == "1"


def test_it_is_the_same_for_every_installation() -> None:
    assert dashboard(Installation(name="op", namespace="a"))["data"] == dashboard(Installation())["data"]


def test_series_and_labels_are_the_operator_s() -> None:
    assert missing_series(ASKED, EXPORTED) == []


def test_what_the_operator_counts_is_shown() -> None:
    """A counter that nobody sees is forgotten: one that is added is shown."""
    own = {name for name in EXPORTED if name.startswith("kvtier_")}
    assert {name for name in own - ASKED.keys() if not name.endswith(("_created", "_sum", "_count"))} == set()


def test_every_query_is_of_the_installation_that_was_chosen() -> None:
    for expression, _ in targets(shown_of_operator()):
        selectors = expression.count('namespace="$namespace",job="$job"')
        assert selectors == expression.count("{") > 0
