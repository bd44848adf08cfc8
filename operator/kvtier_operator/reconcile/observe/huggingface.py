"""A model's configuration from Hugging Face, or from the mirror that HF_ENDPOINT names, with few requests."""

import asyncio
import os
import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import aiohttp

from kvtier_common.errors import KvtierError, UnreachableError
from kvtier_common.http.answer import read_body
from kvtier_operator.planning.model_shape.config.model_files import (
    CONFIG,
    PARAMS,
    QUANTIZATION,
    names_of,
    one_config,
    parse_file,
)

_ENDPOINT: Final = "https://huggingface.co"
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_MOST_BYTES: Final = 2 << 20
_AT_A_TIME: Final = 2
_TIMEOUT: Final = aiohttp.ClientTimeout(total=10)
_FOUND, _NOT_FOUND = 200, 404
_NOT_FOR_EVERYONE: Final = {401, 403}


class NotPublicError(KvtierError):
    """The Hub has no model of this name, or not for everyone."""


class HubClient:
    """Asks the Hub for the configuration of a model by name."""

    def __init__(self) -> None:
        self._endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or _ENDPOINT
        self._turns = asyncio.Semaphore(_AT_A_TIME)

    async def config(self, name: str, revision: str | None) -> tuple[dict[str, Any], str]:
        """Configuration of a model, and where it came from.

        Raises:
            NotPublicError: It has no such model, or not for everyone.
            UnreachableError: It gave no answer; trying again may help.
            InvalidInputError: What it has is no config.json.
        """
        if _NAME.fullmatch(name) is None:
            raise NotPublicError(f"{name!r} is no name of a model on {self._endpoint}")
        if self._turns.locked():  # a Hub that is slow must not hold up whoever does not need it
            raise UnreachableError(f"{self._endpoint} is asked for others: this one is asked for again")
        where = f"{self._endpoint}/{name}/resolve/{quote(revision or 'main', safe='')}"
        async with self._turns, aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True) as session:
            files = await self._files(session, where, name)
        return one_config(files), f"{self._endpoint}/{name}, {names_of(files)}"

    async def _files(
        self, session: aiohttp.ClientSession, where: str, name: str
    ) -> dict[str, Mapping[str, Any]]:
        if config := await self._file(session, where, CONFIG):
            files = {CONFIG: config}
        elif params := await self._file(session, where, PARAMS):
            files = {PARAMS: params}
        else:
            raise NotPublicError(f"{self._endpoint} has no config.json of {name!r}")
        if files.get(CONFIG, {}).get("quantization_config") is None and (
            quantization := await self._file(session, where, QUANTIZATION)
        ):
            files[QUANTIZATION] = quantization
        return files

    async def _file(self, session: aiohttp.ClientSession, where: str, file: str) -> Mapping[str, Any] | None:
        """One file of a repository; None where it has no such file."""
        url = f"{where}/{file}"
        try:
            async with session.get(url, max_redirects=3) as response:
                if response.status == _NOT_FOUND:
                    return None
                if response.status in _NOT_FOR_EVERYONE:
                    raise NotPublicError(f"{self._endpoint} does not show {url} to everyone")
                if response.status != _FOUND:
                    raise UnreachableError(f"{url}: {response.status} {response.reason}")
                text = await read_body(response.content, url, _MOST_BYTES, asyncio.Semaphore(1))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UnreachableError(f"no answer to {url}: {error or type(error).__name__}") from error
        return parse_file(text.decode(errors="replace"), url, "spec.model.name")
