"""The image that an engine runs, and the minor of vLLM in it."""

from kvtier_operator.api.resource import Spec
from kvtier_operator.planning.backends import traits_of
from kvtier_operator.planning.base.vllm_minor import vllm_minor
from kvtier_operator.planning.images import ImageSource
from kvtier_operator.planning.observed import Observed


def engine_image(spec: Spec, images: ImageSource) -> str:
    """The resource's own image, or the one that the installation has for its backend and device."""
    return spec.engine.image or images.engine(traits_of(spec.backend).images[spec.engine.device])


def engine_minor(spec: Spec, observed: Observed) -> int | None:
    """33 for vLLM 0.33; None where the image's reference does not tell, and in a local run without one.

    A local run without an image takes this machine's vLLM, whose version a plan does not ask for.
    """
    if spec.engine.image is None and observed.machine:
        return None
    return vllm_minor(engine_image(spec, observed.images))
