"""Whether the cluster's owner lets a resource name these images."""

from typing import Final

from kvtier_operator.api.spec.model import ModelSpec
from kvtier_operator.planning.base.owner_policy import ALLOW, Limit
from kvtier_operator.planning.checks.check import CheckInput
from kvtier_operator.planning.checks.policy.denial import Denial
from kvtier_operator.planning.images import repository_of
from kvtier_operator.planning.pod_template.template import images
from kvtier_operator.planning.verdict import CheckResult, Verdicts
from kvtier_operator.planning.weights.pod_weights import SourceKind, model_source

_VERDICTS: Final = Verdicts("allowed-images", "spec.engine.image")
_DENIAL: Final = Denial(
    _VERDICTS,
    "ImageDenied",
    nothing="no resource name an image",
    these="resources name images of",
)
_OWN: Final = "leave it out for the installation's own"
_ADDED: Final = "leave it out of the template"
_MODEL: Final = "have the model on a claim: pvc:// in spec.model.source"


def allowed_images(given: CheckInput) -> CheckResult:
    """Those that the resource does not name are the installation's own choice."""
    limit, models = given.policy.images, _of_the_model(given.spec.model)
    standalone = given.spec.router.standalone
    named = {
        "spec.engine.image": given.spec.engine.image,
        "spec.router.image": given.spec.router.image,
        "spec.router.gateway.standalone.image": standalone.image if standalone else None,
        **models,
        **(of_templates := images(given.spec)),
    }
    denied = [(field, image) for field, image in named.items() if image and not _permits(limit, image)]
    if denied:
        first = denied[0][0]
        instead = _MODEL if first in models else _ADDED if first in of_templates else _OWN
        return _DENIAL.of(limit, denied, instead)
    return _VERDICTS.passed("no image is named that the cluster's owner denies")


def _of_the_model(model: ModelSpec) -> dict[str, str | None]:
    source = model_source(model)
    is_image = source is not None and source.kind is SourceKind.IMAGE
    return {
        "spec.model.source": source.place if source and is_image else None,
        "spec.model.fetcher.image": model.fetcher.image if model.fetcher else None,
    }


def _permits(limit: Limit, image: str) -> bool:
    """An entry is a whole image, a repository or, where it ends in `/`, the start of one."""
    if isinstance(limit, str):
        return limit == ALLOW
    name = repository_of(image)
    return any(each in (image, name) or (each[-1] == "/" and name.startswith(each)) for each in limit)
