"""The init container that brings the model, where neither vLLM nor Kubernetes does."""

from typing import Any, Final

from kvtier_operator.api.spec.pod import EnvVar
from kvtier_operator.planning.objects.engine.pod.doctor import bounds
from kvtier_operator.planning.objects.engine.pod.security import fetcher_container_security
from kvtier_operator.planning.plan import Plan
from kvtier_operator.planning.weights.model_source import MODEL_DIR, SourceKind, model_source

NAME: Final = "fetcher"
_SOURCE: Final = "MODEL_SOURCE"
_FOLDER: Final = "MODEL_DIR"
_HOME: Final = "/tmp"  # noqa: S108 - of the container's own


def engine_fetcher(plan: Plan) -> list[dict[str, Any]]:
    """One, or none: it runs before each start, and finds what an earlier one left on a volume that lasts.

    It has the engine's CPU and memory, which cost nothing: the engine starts when it has ended.
    """
    model = plan.resource.spec.model
    source, fetcher = model_source(model), model.fetcher
    if plan.weights is None or fetcher is None or source is None or source.kind is not SourceKind.FETCHED:
        return []
    source_variables = {_SOURCE: source.place, _FOLDER: source.folder}
    arguments = fetcher.args or ([] if fetcher.command else [f"$({name})" for name in source_variables])
    # the user has no home in the image
    own = {"HOME": _HOME, **source_variables}
    given = {each.name for each in fetcher.env}
    container = {
        "name": NAME,
        "image": fetcher.image,
        "command": list(fetcher.command),
        "args": list(arguments),
        "env": [
            *({"name": name, "value": own[name]} for name in own if name not in given),
            *(_variable(each) for each in fetcher.env),
        ],
        "resources": {
            "requests": bounds(plan.budget.requests, pages=False),
            "limits": bounds(plan.budget.limits, pages=False),
        },
        "securityContext": fetcher_container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": plan.weights.name, "mountPath": MODEL_DIR}],
    }
    return [{name: value for name, value in container.items() if value != []}]


def _variable(given: EnvVar) -> dict[str, Any]:
    return given.model_dump(mode="json", by_alias=True, exclude_none=True)
