"""Every row of the tables in docs/operations/rbac.md is tried, and no other."""

import re

from tests.cluster.harness.operator.places import ROOT
from tests.cluster.install.trust import test_asks, test_changes, test_forms, test_made

from kvtier_operator.install.admission import PRIVILEGES

PAGE = ROOT / "docs" / "operations" / "rbac.md"
TRIED = (test_asks.ROWS, test_changes.ROWS, test_forms.ROWS, test_made.ROWS)


def test_every_row_of_the_docs_is_tried() -> None:
    trust = PAGE.read_text().partition("\n## Trust\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z-]+)` \|", trust, re.MULTILINE)
    assert sorted(rows) == sorted(row for each in TRIED for row in each)
    assert {privilege.id for privilege in PRIVILEGES} | {"first"} == test_asks.ROWS
