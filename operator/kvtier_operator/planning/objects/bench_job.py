"""Job that measures a resource's tiers on a node, in a pod like its engines'."""

from typing import Any, Final

from kvtier_operator.planning.base.merge import merged, without_containers
from kvtier_operator.planning.base.names import Component, Names
from kvtier_operator.planning.bench import BenchRun
from kvtier_operator.planning.objects.engine.pod.container import engine_container
from kvtier_operator.planning.objects.engine.pod.pod_spec import engine_pod
from kvtier_operator.planning.objects.engine.pod.volumes import HOME
from kvtier_operator.planning.plan import Plan

KEPT_S: Final = 86_400
"""How long its log can be read."""
_TERMINATION_LOG: Final = "/dev/termination-log"
_LIKE_THE_ENGINE: Final = ("image", "resources", "securityContext", "volumeMounts")
_COLUMNS: Final = "160"
"""Width of the table in the log, which has no terminal to ask."""


def bench_job(plan: Plan, run: BenchRun) -> dict[str, Any]:
    """One pod, run once: a second try would measure another node at another time.

    Its labels are not the engines', so no Service and no picker sends it a request. Its service account is
    the namespace's own, without a token: the engines' is there only where the resource has been applied.
    Of the engines' template it has what is the whole pod's: a container beside it would keep it from ending.
    """
    names = Names.of(plan)
    planned = {
        "metadata": {"labels": names.labels(Component.BENCH)},
        "spec": engine_pod(plan, _container(plan, run)) | {"restartPolicy": "Never"},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": names.metadata(names.bench, Component.BENCH),
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": run.deadline_s,
            "ttlSecondsAfterFinished": KEPT_S,
            "template": merged(planned, without_containers(plan.resource.spec.engine.pod_template or {})),
        },
    }


def _container(plan: Plan, run: BenchRun) -> dict[str, Any]:
    engine = engine_container(plan)
    return {
        "name": "bench",
        **{field: engine[field] for field in _LIKE_THE_ENGINE},
        "command": ["kvtier", "bench", "connector"],
        "args": _arguments(plan, run),
        "env": [{"name": "COLUMNS", "value": _COLUMNS}, *engine["env"]],
        "terminationMessagePath": _TERMINATION_LOG,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _arguments(plan: Plan, run: BenchRun) -> list[str]:
    """What is measured, and after `--` the engine's own arguments but for the model, which is drawn."""
    _model, *engine = plan.engine.args
    sides = ["--sides", ",".join(run.sides)] if run.sides else []
    return [
        *("--only", ",".join(run.parts)),
        *("--shape", run.shape),
        *sides,
        *("--turns", str(run.turns)),
        *("--out", f"{HOME}/bench/connector.json"),
        *("--termination-log", _TERMINATION_LOG),
        "--",
        *engine,
    ]
