"""Python and the API server accept and refuse the same resources, the rules with the same words."""

import pytest
from tests.cases.kvcachetier import ACCEPTED, Document, document
from tests.cases.refused.refused import REFUSED
from tests.cases.refused.refused_case import Refused
from tests.cases.rules.rule_case import RuleCase
from tests.cases.rules.rules import RULES
from tests.cluster.harness.api.kvcachetiers import KVCacheTiers, RefusedError

from kvtier_operator.api.parse import parse_resource

REQUIRED = {name: case for name, case in REFUSED.items() if ": is required" in case.said}


def _server_says(kvcachetiers: KVCacheTiers, resource: Document) -> str:
    try:
        kvcachetiers.create(resource, dry_run=True)
    except RefusedError as refused:
        return refused.message
    return ""


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED)
def test_server_accepts(kvcachetiers: KVCacheTiers, changes: dict[str, object]) -> None:
    assert _server_says(kvcachetiers, document(changes)) == ""


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_server_refuses(kvcachetiers: KVCacheTiers, case: Refused) -> None:
    assert _server_says(kvcachetiers, document(case.changes)) != ""


@pytest.mark.parametrize("case", REQUIRED.values(), ids=REQUIRED)
def test_server_names_the_field_that_is_required(kvcachetiers: KVCacheTiers, case: Refused) -> None:
    field, _, _ = case.said.partition(": is required")
    assert f"{field}: Required value" in _server_says(kvcachetiers, document(case.changes))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.message)
def test_rule_accepts(kvcachetiers: KVCacheTiers, rule: RuleCase) -> None:
    assert _server_says(kvcachetiers, document(rule.accepted)) == ""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.message)
def test_rule_refuses(kvcachetiers: KVCacheTiers, rule: RuleCase) -> None:
    said = _server_says(kvcachetiers, document(rule.refused))
    assert rule.message in said
    assert rule.field in said


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.message)
def test_a_defaulted_resource_still_parses(kvcachetiers: KVCacheTiers, rule: RuleCase) -> None:
    stored = kvcachetiers.create(document(rule.accepted), dry_run=True)
    sent = parse_resource(document(rule.accepted), "sent")
    assert parse_resource(stored, "stored").spec == sent.spec


def test_a_devices_former_word(kvcachetiers: KVCacheTiers) -> None:
    """Also where attach has engine left out, into which an earlier API server wrote it."""
    attached = {"spec.attach": {"podSelector": {"matchLabels": {"a": "b"}}}}
    for changes in ({}, attached):
        stored = kvcachetiers.create(document({**changes, "spec.engine": {"device": "cuda"}}), dry_run=True)
        assert parse_resource(stored, "stored").spec.engine.device == "gpu"


def test_a_policys_former_word(kvcachetiers: KVCacheTiers) -> None:
    changes = {"spec.tiers.cpu.hugepages": {"policy": "Off"}}
    stored = kvcachetiers.create(document(changes), dry_run=True)
    assert parse_resource(stored, "stored").spec.tiers.cpu.hugepages.policy == "Never"
    paged = document({"spec.tiers.cpu.hugepages": {"policy": "Off", "pageSize": "2Mi"}})
    assert "pageSize needs a policy" in _server_says(kvcachetiers, paged)


def test_an_unquoted_off_is_kinder_here_than_there(kvcachetiers: KVCacheTiers) -> None:
    resource = document({"spec.tiers.cpu.memlock.policy": False})  # how YAML 1.1 reads `policy: Off`
    assert parse_resource(resource, "here").spec.tiers.cpu.memlock.policy == "Never"
    assert "must be of type string" in _server_says(kvcachetiers, resource)
