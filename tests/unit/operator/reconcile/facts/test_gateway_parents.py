"""What gateways' controllers say of routes and pools."""

from typing import Any

import pytest
from tests.cases.routes import condition, parent_status, route

from kvtier_operator.reconcile.facts.objects import (
    ParentAnswer,
    ParentFacts,
    pool_parents,
    route_parents,
)


def _route(*entries: dict[str, Any], generation: int = 1, section: str = "") -> ParentFacts:
    document = route(section=section, status={"parents": [*entries]})
    document["metadata"]["generation"] = generation
    (only,) = route_parents(document)
    return only


_REFUSED = condition("Accepted", "False", "NotAllowedByListeners", "No such\nlistener allows it.")
_OLD = condition(generation=1)


@pytest.mark.parametrize(
    ("conditions", "generation", "answer", "said"),
    [
        ([condition(), condition("ResolvedRefs")], 1, ParentAnswer.ACCEPTED, ""),
        ([condition()], 1, ParentAnswer.ACCEPTED, ""),
        ([], 1, ParentAnswer.PENDING, ""),
        ([condition("ResolvedRefs")], 1, ParentAnswer.PENDING, ""),
        ([_OLD], 2, ParentAnswer.PENDING, ""),
        ([condition(generation=2), condition("ResolvedRefs")], 2, ParentAnswer.PENDING, ""),
        ([_REFUSED], 2, ParentAnswer.PENDING, ""),  # it refused what is no longer wanted
        (
            [condition("Accepted", "Unknown", "Pending", "soon")],
            1,
            ParentAnswer.PENDING,
            "Accepted=Unknown, Pending: soon (example.com/gateway)",
        ),
        (
            [_REFUSED, condition("ResolvedRefs")],
            1,
            ParentAnswer.REJECTED,
            "Accepted=False, NotAllowedByListeners: No such listener allows it. (example.com/gateway)",
        ),
        (
            [condition(), condition("ResolvedRefs", "False", "InvalidKind", "no pools here")],
            1,
            ParentAnswer.REJECTED,
            "ResolvedRefs=False, InvalidKind: no pools here (example.com/gateway)",
        ),
        # falling back to an older generation, as the specification allows
        (
            [_OLD, condition("PartiallyInvalid", "True", "UnsupportedValue", "Fall Back", 2)],
            2,
            ParentAnswer.REJECTED,
            "PartiallyInvalid=True, UnsupportedValue: Fall Back (example.com/gateway)",
        ),
        (
            [condition(), condition("Programmed", "False", "TranslationError", "bad")],
            1,
            ParentAnswer.REJECTED,
            "Programmed=False, TranslationError: bad (example.com/gateway)",
        ),
        ([condition(), condition("Reconciled", "False", "Failed", "bad")], 1, ParentAnswer.REJECTED, ""),
        (
            [condition(), condition("example.com/Affected", "False", "None", "x")],
            1,
            ParentAnswer.ACCEPTED,
            "",
        ),
    ],
)
def test_what_a_gateway_makes_of_a_route(
    conditions: list[dict[str, Any]], generation: int, answer: ParentAnswer, said: str
) -> None:
    found = _route(parent_status(*conditions), generation=generation)
    assert found.answer is answer
    assert found.message == said or not said


def test_one_without_a_generation_is_taken_for_current() -> None:
    accepted = condition()
    del accepted["observedGeneration"]
    assert _route(parent_status(accepted), generation=7).answer is ParentAnswer.ACCEPTED


def test_nobody_has_said_anything() -> None:
    assert _route().answer is ParentAnswer.UNANSWERED
    others = parent_status(condition(), gateway="infra/other")
    assert _route(others).answer is ParentAnswer.UNANSWERED
    assert _route(parent_status(condition()), section="https").answer is ParentAnswer.UNANSWERED


def test_a_parent_is_told_by_its_listener_too() -> None:
    entries = [parent_status(_REFUSED, sectionName="http"), parent_status(condition(), sectionName="https")]
    assert _route(*entries, section="https").answer is ParentAnswer.ACCEPTED
    assert _route(*entries, section="http").answer is ParentAnswer.REJECTED


def test_of_two_controllers_the_worst_word_counts() -> None:
    entries = [parent_status(_REFUSED), parent_status(condition(), controller="example.com/other")]
    assert _route(*entries).answer is _route(*reversed(entries)).answer is ParentAnswer.REJECTED


def test_what_does_not_take_a_route_at_all_is_told_from_what_lacks_its_backend() -> None:
    assert not _route(parent_status(_REFUSED)).attached
    assert _route(parent_status(condition(), condition("ResolvedRefs", "False"))).attached


def test_long_words_are_cut_short() -> None:
    found = _route(parent_status(condition("Accepted", "False", "No", "x" * 32_000)))
    assert len(found.message) < 1100


def _pool(*entries: dict[str, Any]) -> list[tuple[str, ParentAnswer]]:
    metadata = {"namespace": "team", "name": "qwen", "generation": 1}
    found = pool_parents({"metadata": metadata, "status": {"parents": [*entries]}})
    return [(each.listeners.gateway, each.answer) for each in found]


def test_what_gateways_make_of_a_pool() -> None:
    not_exported = condition("Exported", "False", "NotRequested")
    bad = condition("ResolvedRefs", "False", "InvalidExtensionRef")
    assert _pool(parent_status(condition(), not_exported)) == [("infra/front", ParentAnswer.ACCEPTED)]
    assert _pool(parent_status(condition(), bad)) == [("infra/front", ParentAnswer.REJECTED)]


def test_a_pool_that_no_gateway_speaks_of() -> None:
    pending = condition("Accepted", "Unknown", "Pending", "Waiting for controller")
    default = {"parentRef": {"kind": "Status", "name": "default"}, "conditions": [pending]}
    assert _pool() == []
    assert _pool(default, {"parentRef": {}, "conditions": [pending]}) == []
