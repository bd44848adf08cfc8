"""Every reason of a condition stands in a table of the failure modes, and nothing else does."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.unit.docs.pages import DOCS, ROOT, quoted_words, rows

from kvtier_common import errors
from kvtier_common.errors import KvtierError
from kvtier_common.kubernetes import answers

FAILURES = DOCS / "operations/failure-modes.md"
_CODE = ROOT / "operator" / "kvtier_operator"
_SOURCES = (
    "reconcile/status/**/*.py",
    "reconcile/facts/*.py",
    "reconcile/cache/pods.py",
    "reconcile/apply/apply.py",
    "planning/cluster/*.py",
    "planning/checks/policy.py",
)
"""Whatever gives a condition a reason; those of a plan's other checks are in their messages."""
_OTHER_WORDS = {
    *("AutoscalerReady", "BudgetFits", "EnginesReady", "NodesFit", "RouterReady", "StoreReady"),  # conditions
    *("AbleToScale", "ScalingActive"),  # of an autoscaler
    *("True", "False", "Error", "Failed", "Always"),
    *(
        "ConfigMap",
        "DesiredObject",
        "Deployment",
        "HorizontalPodAutoscaler",
        "ReplicaSet",
        "ScaledObject",
    ),
    *("Container", "Pod", "PersistentVolumeClaim"),  # of LimitRanges
    *("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "PriorityClass"),  # of quotas
    *("DaemonSet", "Job", "StatefulSet"),
    "Exists",  # an operator of selectors
    *("NoExecute", "NoSchedule"),
    *("PodScheduled", "ReplicaFailure"),
    *("PartiallyInvalid", "Programmed", "Reconciled", "ResolvedRefs", "Unknown"),  # of routes and pools
    *("InvalidKind", "NoMatchingListenerHostname", "NoMatchingParent", "NotAllowedByListeners"),
    *("ContainerCreating", "CrashLoopBackOff", "PodInitializing"),  # of a pod that is told of by more
}
"""What looks like a reason there and is none."""
_NOT_OF_A_WRITE = {"Kvtier", "Permanent", "Retryable", "Momentary", "Expired", "TooLarge"}


def _reasons() -> set[str]:
    found = {pattern: list(_CODE.glob(pattern)) for pattern in _SOURCES}
    assert all(found.values()), found
    words = {word for sources in found.values() for source in sources for word in _words(source)}
    assert words >= _OTHER_WORDS, "some of _OTHER_WORDS are in the code no more"
    return words - _OTHER_WORDS | {reason for reason in _errors() if reason not in _NOT_OF_A_WRITE}


def _words(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and re.fullmatch(r"[A-Z][A-Za-z]+", value):
            yield value


def _errors() -> Iterator[str]:
    """What reconcile/apply/apply.py makes of an error's name."""
    for each in (*vars(errors).values(), *vars(answers).values()):
        if isinstance(each, type) and issubclass(each, KvtierError):
            yield each.__name__.removesuffix("Error")


def test_every_reason_is_documented() -> None:
    documented = {
        word for row in rows(FAILURES, "## On a cluster") for word in quoted_words(" ".join(row[:2]))
    }
    assert _reasons() - documented == set()


def test_tables_of_reasons_have_no_others() -> None:
    sections = (
        "### The namespace",
        "### Nodes",
        "### Engines",
        "### Router",
        "### Autoscaler",
        "### When all is well",
    )
    listed = {
        word
        for section in sections
        for row in rows(FAILURES, section)
        for word in quoted_words(row[0])
        if re.fullmatch(r"[A-Z][A-Za-z]+", word)
    }
    assert len(listed) > 30
    assert listed - _reasons() == set()
