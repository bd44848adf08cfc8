"""What pods' statuses say of their doctors."""

from typing import Any

import pytest
from tests.cases.seen import pod

from kvtier_operator.cli.cluster.doctors import DoctorFindings, doctor_findings
from kvtier_operator.doctor.verdict import Severity, Verdict, termination_message


def ended(message: str | None = None, exit_code: int = 0, *, state: str = "state") -> dict[str, Any]:
    terminated = {"exitCode": exit_code, **({} if message is None else {"message": message})}
    doctor = {"name": "doctor", "state": {}, state: {"terminated": terminated}}
    return pod("a", initContainerStatuses=[{"name": "fetcher"}, doctor])


def of(*pods: dict[str, Any]) -> tuple[tuple[Severity, str], ...]:
    [found] = doctor_findings(pods)
    assert (found.pod, found.node) == ("a", "node-a")
    return found.findings


FULL = Verdict.failed("memory", "2 GiB needed, 1 GiB allowed")
SLOW = Verdict.warned("hugepages", "none free on node a")
WELL = Verdict.passed("shared-memory", "1 GiB needed")


def test_what_the_doctor_itself_writes_is_read_again() -> None:
    assert of(ended(termination_message([WELL, FULL]), 1)) == ((Severity.FAIL, str(FULL)),)
    assert of(ended(termination_message([SLOW, WELL, SLOW]))) == ((Severity.WARN, str(SLOW)),) * 2
    assert of(ended(termination_message([WELL]))) == ((Severity.PASS, "the engine finds what it needs"),)


@pytest.mark.parametrize("state", ["state", "lastState"])
def test_also_while_it_waits_for_its_next_try(state: str) -> None:
    assert of(ended("memory: too little", 1, state=state)) == ((Severity.FAIL, "memory: too little"),)


@pytest.mark.parametrize(
    ("message", "exit_code", "severity", "said"),
    [
        (None, 137, Severity.FAIL, "the doctor ended with exit code 137"),
        ("two\nlines", 1, Severity.FAIL, "two lines"),
        (None, 0, Severity.PASS, "the engine finds what it needs"),
        ("[]", 0, Severity.PASS, "the engine finds what it needs"),
        ('{"warnings": 7}', 0, Severity.PASS, "the engine finds what it needs"),
        (
            '{"outcome": "Warn", "warnings": ["cut of',
            0,
            Severity.WARN,
            '{"outcome": "Warn", "warnings": ["cut of',
        ),
        ("[" * 4000, 0, Severity.WARN, "[" * 4000),
    ],
)
def test_whatever_a_pod_says(message: str | None, exit_code: int, severity: Severity, said: str) -> None:
    assert of(ended(message, exit_code)) == ((severity, said),)


def test_a_doctor_that_has_not_ended() -> None:
    assert of(pod("a")) == ()
    assert of(pod("a", initContainerStatuses=[{"name": "doctor", "state": {"running": {}}}])) == ()


def test_engines_alone_by_name() -> None:
    found = doctor_findings([pod("b"), pod("p", "picker"), pod("a")])
    assert found == (DoctorFindings("a", "node-a", ()), DoctorFindings("b", "node-b", ()))
