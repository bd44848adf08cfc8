"""Pages say what is so: examples are taken, tables agree with the code."""

import re
from pathlib import Path

import promql_parser
import pytest
from tests.cases.kvcachetier import DISK
from tests.cases.monitoring import read_metrics
from tests.cases.seen import view_of, well
from tests.unit.docs.pages import (
    DOCS,
    PAGES,
    ROOT,
    documents,
    fenced_blocks,
    name,
    quoted_words,
    rows,
    typed_commands,
)

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.schema.crd import crd
from kvtier_operator.cli.cluster.next_step import next_step
from kvtier_operator.cli.cluster.screen import status_screen
from kvtier_operator.planning.attach.plan import plan_attach
from kvtier_operator.planning.base.node import Node
from kvtier_operator.planning.cluster.nodes_fit import nodes_fit
from kvtier_operator.planning.objects import build_objects
from kvtier_operator.planning.observed import Observed
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.planner import make_plan
from kvtier_operator.planning.report.explain import explain
from kvtier_operator.planning.report.summary import summarise
from kvtier_operator.planning.units import GIB
from kvtier_operator.planning.verdict import Outcome
from kvtier_operator.reconcile.status.plan import accepted_condition, budget_fits, nodes_fit_condition

QUICK_START = DOCS / "user-guide/start/quick-start.md"
KUBERNETES = DOCS / "user-guide/run/kubernetes.md"
GUIDE = DOCS / "user-guide/coming-from/llm-d-guide.md"
FAILURES = DOCS / "operations/failure-modes.md"
MONITORING = DOCS / "operations/monitoring.md"
ON_DISK = {"disk": DISK}
SOURCE = "\n".join(path.read_text() for path in sorted((ROOT / "operator").rglob("*.py")))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_examples_are_yaml_and_kvcachetiers_that_are_accepted(page: Path) -> None:
    for document in documents(page):
        if document.get("kind") == "KVCacheTier" and document.get("apiVersion"):
            resource = parse_resource(document, name(page))
            if resource.spec.attach:
                assert plan_attach(resource, Observed()).memory
            else:
                assert not make_plan(resource, Observed()).rejected


@pytest.mark.parametrize("page", [ROOT / "README.md", QUICK_START], ids=name)
def test_the_first_resources_plan_without_a_warning(page: Path) -> None:
    for first in documents(page):
        plan = make_plan(parse_resource(first, name(page)), Observed())
        assert [check for check in plan.checks if check.outcome is not Outcome.PASS] == []
        assert accepted_condition(plan).reason == "Accepted"


def test_the_tiers_shown_are_what_the_command_prints() -> None:
    [shown] = fenced_blocks(DOCS / "user-guide/questions/is-my-tier-used.md", "text")
    view = view_of(well())
    assert shown in status_screen(view, next_step(view), 80)


def test_the_screen_shown_is_what_the_command_prints() -> None:
    [shown] = fenced_blocks(DOCS / "user-guide/run/kubectl-plugin.md", "text")
    view = view_of(well())
    assert shown == status_screen(view, next_step(view), 80)


def test_the_plan_that_is_read_is_what_the_command_prints() -> None:
    page = DOCS / "user-guide/start/plan.md"
    [first] = documents(page)
    command = typed_commands(page)[0]
    summary = summarise(make_plan(parse_resource(first, name(page)), Observed()))
    assert "\n".join(command.shown).startswith(summary)


def test_the_readme_shows_what_the_command_prints() -> None:
    [first] = documents(ROOT / "README.md")
    command = typed_commands(ROOT / "README.md")[2]
    assert command.command == "kvtier plan -f cr.yaml"
    summary = summarise(make_plan(parse_resource(first, "README.md"), Observed()))
    for part in "\n".join(command.shown).split("\n...\n"):
        assert part.removesuffix("\n...") in summary


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "user-guide/run/kubernetes.md"], ids=name)
def test_what_kubectl_shows_of_a_resource_has_the_crds_columns(page: Path) -> None:
    [shown] = [command.shown for command in typed_commands(page) if command.command.endswith(" get kvct")]
    columns = crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    names = [column["name"].upper() for column in columns if "priority" not in column]
    assert shown[0].split() == ["NAME", *names]


def test_failure_modes_name_reasons_that_the_operator_gives() -> None:
    reasons = {
        word
        for row in rows(FAILURES, "## On a cluster")
        for word in quoted_words(" ".join(row[:2]))
        if re.fullmatch(r"([A-Z][A-Za-z]+){2,}", word)
    } - {"KVCacheTier"}
    unknown = {reason for reason in reasons if not re.search(rf"\b{reason}(Error)?\b", SOURCE)}
    assert len(reasons) > 20
    assert unknown == set()


def test_monitoring_names_metrics_that_alerts_or_dashboard_read() -> None:
    cells = [row[0] for row in rows(MONITORING, "## Metrics worth knowing")]
    named = {word for cell in cells for word in quoted_words(cell)} | set(_picker_metrics())
    read = {
        re.sub(r"_(bucket|sum|count)$", "", metric)
        for flavor in ("llm-d", "gaie")
        for metric in _read(flavor)
    }
    assert named
    assert named <= read


def _picker_metrics() -> list[str]:
    return [
        word for word in quoted_words(MONITORING.read_text(encoding="utf-8")) if word.endswith("_hit_ratio")
    ]


def _read(flavor: str) -> set[str]:
    store = {"capacity": "1Ti", "url": "redis://cache:6379"}
    kept = {"prefixes": [{"name": "tools", "text": "Use these."}], "tenants": [{"name": "search"}]}
    return read_metrics(router={"flavor": flavor}, tiers={**ON_DISK, "remote": store}, **kept)


def test_expressions_are_promql() -> None:
    for expression in fenced_blocks(MONITORING, "promql"):
        promql_parser.parse(expression)


def test_the_conditions_shown_are_what_the_operator_says() -> None:
    first = next(document for document in documents(KUBERNETES) if document["kind"] == "KVCacheTier")
    plan = make_plan(parse_resource(first, name(KUBERNETES)), Observed())
    size = {
        "memory": 900 * GIB,
        "nvidia.com/gpu": 4,
        "cpu": 96_000,
        "pods": 110,
        "ephemeral-storage": 900 * GIB,
    }
    nodes = [Node(name, {}, (), size, ready=True, schedulable=True) for name in ("gpu-a", "gpu-b")]
    said = {
        verdict.type: verdict.message
        for verdict in (
            accepted_condition(plan),
            budget_fits(plan),
            nodes_fit_condition(nodes_fit(plan, nodes)),
        )
    }
    [shown] = fenced_blocks(KUBERNETES, "text")
    for line in shown.splitlines():
        condition, message = line.split(maxsplit=1)
        assert said.pop(condition).startswith(message.removesuffix(" ..."))
    assert said == {}


def test_what_it_costs_is_what_the_first_resource_takes() -> None:
    [first] = documents(ROOT / "README.md")
    report = explain(make_plan(parse_resource(first, "README.md"), Observed()))
    page = (DOCS / "user-guide/questions/what-does-it-cost.md").read_text(encoding="utf-8")
    for figure in ("113.10 GiB", "68.13 GiB", "409,600"):
        assert figure in page
        assert figure in report


def test_lmcache_s_sizes_are_those_of_a_rank() -> None:
    page = DOCS / "user-guide/coming-from/lmcache.md"
    [resource] = documents(page)
    resource["spec"]["backend"] = "LMCache"
    report = explain(make_plan(parse_resource(resource, name(page)), Observed()))
    size = "LMCACHE_MAX_LOCAL_CPU_SIZE=20.0"
    assert size in report
    assert f"`{size}`, `max_local_cpu_size` | `tiers.cpu.capacity: 40Gi`" in page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def plan() -> Plan:
    [resource, *_] = [document for document in documents(GUIDE) if document["kind"] == "KVCacheTier"]
    return make_plan(parse_resource(resource, name(GUIDE)), Observed())


def test_the_walk_through_lists_the_objects_that_are_made(plan: Plan) -> None:
    listed = {
        (kind.strip(), object_name)
        for kinds, names, _ in rows(GUIDE, "## 5. Verify")
        for kind in kinds.split(",")
        for object_name in quoted_words(names)
    }
    assert listed == {(document["kind"], document["metadata"]["name"]) for document in build_objects(plan)}


def test_the_walk_through_has_the_plan_s_numbers(plan: Plan) -> None:
    page, report = GUIDE.read_text(encoding="utf-8"), explain(plan)
    for number in (
        "262,144",
        "409,600",
        "6,400",
        "4,898",
        "313,424",
        "114.20 GiB",
        "LMCACHE_MAX_LOCAL_CPU_SIZE=50.0",
    ):
        assert number in page
        assert number in report
