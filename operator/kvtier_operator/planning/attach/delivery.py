"""How the connector comes into a pod of others: copied by an init container, or as a volume of its image."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from kvtier_connector.payload import (
    CACHE_PATH,
    ENVIRONMENT,
    IMAGE_PAYLOAD_PATH,
    PAYLOAD_PATH,
    SEARCH_PATH,
    VOLUME_NAME,
)

CACHE_NAME: Final = "kvtier-cache"
"""Volume for what numba compiles, where the payload's cannot be written."""
_NUMBA_CACHE: Final = "NUMBA_CACHE_DIR"


class Delivery(StrEnum):
    """As the chart's `attach.payload` and `kvtier attach --payload` have it."""

    INIT_CONTAINER = "init-container"
    IMAGE_VOLUME = "image-volume"

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of the engine's container, unless it has them."""
        if self is Delivery.INIT_CONTAINER:
            return ENVIRONMENT
        # the whole image is mounted: runtimes have folders of images later than images as volumes
        return {**ENVIRONMENT, SEARCH_PATH: f"{PAYLOAD_PATH}{IMAGE_PAYLOAD_PATH}", _NUMBA_CACHE: CACHE_PATH}

    @property
    def mounts(self) -> Mapping[str, str]:
        """Paths in the engine's container by the volumes' names."""
        copied = {VOLUME_NAME: PAYLOAD_PATH}
        return copied if self is Delivery.INIT_CONTAINER else {**copied, CACHE_NAME: CACHE_PATH}

    def volumes(self, image: str) -> list[dict[str, Any]]:
        """The same volumes, of the pod."""
        if self is Delivery.INIT_CONTAINER:
            return [{"name": VOLUME_NAME, "emptyDir": {}}]
        return [{"name": VOLUME_NAME, "image": {"reference": image}}, {"name": CACHE_NAME, "emptyDir": {}}]
