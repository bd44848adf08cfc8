"""The provider that the environment asks for."""

import os
from typing import Final

from tests.cluster.harness.providers.existing import Existing
from tests.cluster.harness.providers.kind import Kind
from tests.cluster.harness.providers.local import Local
from tests.cluster.harness.providers.provider import Provider

PROVIDERS: Final[dict[str, Provider]] = {each.name: each for each in (Local(), Kind(), Existing())}
VARIABLE: Final = "KVTIER_TEST_PROVIDER"


def chosen_provider() -> Provider:
    """What KVTIER_TEST_PROVIDER names; `local` by default.

    Raises:
        ValueError: There is no such provider.
    """
    name = os.environ.get(VARIABLE) or "local"
    if name not in PROVIDERS:
        raise ValueError(f"{VARIABLE}={name}: there are {', '.join(PROVIDERS)}")
    return PROVIDERS[name]
