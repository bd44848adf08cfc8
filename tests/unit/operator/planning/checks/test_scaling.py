"""Checks of the autoscaler's metric."""

from typing import Any

import pytest
from tests.cases.checks import PASS, REJECT, WARN, says, verdict
from tests.cases.planning import resource

from kvtier_operator.planning.checks.disk import disk_folder
from kvtier_operator.planning.checks.picker import data_parallel
from kvtier_operator.planning.checks.scaling import scaling_metrics
from kvtier_operator.planning.observed import Machine, Observed

URL = "http://prometheus.monitoring:9090"
THANOS = "https://thanos-querier.openshift-monitoring.svc:9091"


def scaled(**fields: object) -> dict[str, Any]:
    return {"minReplicas": 2, "maxReplicas": 8, **fields}


@pytest.mark.parametrize(
    ("spec", "outcome", "reason", "words"),
    [
        ({}, PASS, "NotAskedFor", ""),
        ({"autoscaling": scaled()}, PASS, "Passed", "vllm_num_requests_waiting of pods"),
        ({"autoscaling": scaled(prometheusUrl=URL)}, WARN, "MayNotBeScraped", "job case-engine"),
        (
            {"autoscaling": scaled(prometheusUrl=URL), "observability": {"serviceMonitor": True}},
            PASS,
            "Passed",
            URL,
        ),
        (
            {"autoscaling": scaled(prometheusUrl=THANOS), "observability": {"serviceMonitor": True}},
            WARN,
            "MayNotBeAnswered",
            "set spec.autoscaling.prometheus.authenticationRef",
        ),
        (
            {
                "autoscaling": scaled(
                    prometheusUrl=THANOS,
                    prometheus={"authenticationRef": {"name": "thanos"}, "authModes": ["bearer"]},
                ),
                "observability": {"serviceMonitor": True},
            },
            PASS,
            "Passed",
            THANOS,
        ),
        ({"autoscaling": scaled(target="hitRate")}, PASS, "Passed", "kvtier_missed_share"),
        (
            {"autoscaling": scaled(target="hitRate"), "backend": "Native"},
            WARN,
            "MissesOfAnyKind",
            "up to 8: use target queue, or backend KVTier",
        ),
    ],
)
def test_what_it_says(spec: dict[str, Any], outcome: Any, reason: str, words: str) -> None:  # noqa: ANN401
    says(verdict(scaling_metrics, resource(**spec)), outcome, reason, words)


def test_a_claim_for_several_is_refused_by_the_field_that_says_several() -> None:
    claim = {"capacity": "1Ti", "volume": {"persistentVolumeClaim": {"claimName": "one"}}}
    one = resource(tiers={"disk": claim}, autoscaling=scaled())
    result = verdict(disk_folder, one)
    says(result, REJECT, "FolderShared", "8 replicas", "set spec.autoscaling.maxReplicas to 1")


def test_a_local_run_starts_the_least() -> None:
    folder = {"capacity": "1Ti", "volume": {"hostPath": {"path": "/mnt"}}}
    here = Observed(machine=Machine())
    least_one = resource(tiers={"disk": folder}, autoscaling={"maxReplicas": 8})
    says(verdict(disk_folder, least_one, here), PASS, "Passed")
    two = resource(tiers={"disk": folder}, autoscaling=scaled())
    says(verdict(disk_folder, two, here), REJECT, "FolderShared", "spec.autoscaling.minReplicas to 1")


def test_data_parallel_engines_as_pods() -> None:
    one = resource(engine={"dataParallelSize": 4}, autoscaling=scaled())
    words = "autoscaling's minReplicas to 8, maxReplicas to 32"
    says(verdict(data_parallel, one), WARN, "EnginesBehindOnePort", words)
