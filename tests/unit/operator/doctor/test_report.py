import json

from kvtier_operator.doctor.verdict import Severity, Verdict, lines, termination_message, worst

GOOD = Verdict.passed("memory", "1 GiB needed, 2 GiB allowed")
ODD = Verdict.warned("memlock", "1 GiB to lock, it stays unlocked")
BAD = Verdict.failed("disk /d", "not writable; see its permissions")


def test_the_worst_counts() -> None:
    assert worst([]) is worst([GOOD]) is Severity.PASS
    assert worst([GOOD, ODD]) is Severity.WARN
    assert worst([BAD, ODD, GOOD]) is Severity.FAIL


def test_lines_for_a_log() -> None:
    assert lines([GOOD, BAD]) == [
        "Pass  memory: 1 GiB needed, 2 GiB allowed",
        "Fail  disk /d: not writable; see its permissions",
    ]


def test_a_failure_is_one_line_of_what_failed_only() -> None:
    assert termination_message([GOOD, ODD, BAD]) == "disk /d: not writable; see its permissions"
    assert termination_message([BAD, BAD]).count("disk /d") == 2


def test_what_did_not_fail_is_json() -> None:
    assert json.loads(termination_message([GOOD])) == {"outcome": "Pass"}
    assert json.loads(termination_message([GOOD, ODD])) == {"outcome": "Warn", "warnings": [str(ODD)]}


def test_a_message_is_cut_where_kubernetes_would() -> None:
    message = termination_message([Verdict.failed("x", "ä" * 4096)])
    assert len(message.encode()) <= 4096
    assert message.endswith("ä")
