"""What the client makes of trouble on its own side."""

import asyncio
import errno
import os

import pytest
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import ConfigException

from kvtier_common.errors import UnreachableError
from kvtier_common.kubernetes.client import Api


@pytest.mark.parametrize(
    "trouble",
    [OSError(errno.EMFILE, os.strerror(errno.EMFILE)), ConfigException("Token file exists but empty.")],
)
def test_a_token_that_cannot_be_read_for_a_moment_is_worth_another_try(trouble: Exception) -> None:
    async def refresh(_: Configuration) -> None:
        raise trouble

    async def ask() -> None:
        configuration = Configuration(host="http://127.0.0.1:1", api_key={"BearerToken": "old"})
        configuration.refresh_api_key_hook = refresh
        async with Api(configuration, "test") as api:
            with pytest.raises(UnreachableError, match=str(trouble.args[-1])):
                await api.get("/api/v1/pods", {})
            with pytest.raises(UnreachableError, match=str(trouble.args[-1])):
                async for _ in api.watch("/api/v1/pods", {}):
                    pass

    asyncio.run(ask())
