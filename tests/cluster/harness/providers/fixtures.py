"""What a provider has as a pytest fixture: skipped with the reason, or failed in one line."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TypeVar

import pytest
from tests.cluster.harness.programs.tools import MissingToolError
from tests.cluster.harness.providers.provider import Ability, Provider, lacking

Made = TypeVar("Made")


def need(provider: Provider, ability: Ability) -> None:
    """Skips the test if the provider cannot do something, and says why."""
    if reason := lacking(provider, ability):
        pytest.skip(reason)


@contextmanager
def made(making: AbstractContextManager[Made]) -> Iterator[Made]:
    """As the context itself, but a missing tool is one line and no traceback."""
    missing = ""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(making)
        except MissingToolError as error:
            missing = str(error)
        if missing:
            pytest.fail(missing, pytrace=False)
        yield running
