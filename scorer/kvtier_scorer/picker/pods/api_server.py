"""Reads and watches one API server with the official client's connections and credentials.

The official client brings what is easily got wrong: service account tokens that are exchanged while it runs,
kubeconfigs with certificates or programs that log in. Objects stay plain values: a model object for each pod
costs ten times as much.
"""

import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import getproxies

import aiohttp
import orjson
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from kvtier_scorer.config.errors import PickerConfigError

_IN_CLUSTER: Final = "KUBERNETES_SERVICE_HOST"
_CONNECT_S: Final = 10
_ANSWER_S: Final = 30
_OK: Final = 200
_GONE: Final = 410
_HEAD_BYTES: Final = 1024
MOST_BYTES: Final = 4 << 20
"""Of an answer and of a line of a watch. etcd keeps 1.5 MiB of an object, which as JSON can be more."""
JSON: Final = "application/json"
TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
_NO_ANSWER: Final = (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError)


class ApiServerError(Exception):
    """The API server did not answer, refused, or said something that it should not; one line."""


class ExpiredError(ApiServerError):
    """The resource version is too old to go on from (410): list again."""


class TooLargeError(ApiServerError):
    """An answer is longer than `MOST_BYTES`: ask for less at a time."""


@dataclass(frozen=True, slots=True)
class CutLine:
    """A line of a watch that is longer than `MOST_BYTES`.

    Attributes:
        head: How it begins.
    """

    head: bytes


async def connection() -> Configuration:
    """Where the API server is and who we are: KUBECONFIG if it is set, else the pod's service account.

    Raises:
        PickerConfigError: There is neither; the message says what to do.
    """
    configuration = Configuration()
    try:
        if os.environ.get(_IN_CLUSTER) and not os.environ.get("KUBECONFIG"):
            load_incluster_config(client_configuration=configuration)
        else:
            await load_kube_config(client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise PickerConfigError(
            f"no cluster to read the InferencePool from: {error}; run in a pod with a service account, set "
            "KUBECONFIG, or give a static list of pods"
        ) from error
    return configuration


class ApiServer:
    """One API server; `close` it in the end.

    Args:
        configuration: Where it is and who we are.
        silence_s: A watch without a line for this long is dead. The server sends a bookmark every 60 to 75
            seconds (k8s.io/apiserver, pkg/storage/cacher: bookmarkFrequency and its jitter).
    """

    def __init__(self, configuration: Configuration, silence_s: float = 100.0) -> None:
        configuration.client_session_kwargs = {"trust_env": bool(getproxies())}
        configuration.connection_pool_maxsize = 0  # a watch holds its connection
        self._client = ApiClient(configuration)
        self._host = configuration.host
        self._silence_s = silence_s

    async def close(self) -> None:
        """Ends all connections."""
        await self._client.close()

    async def get(self, path: str, query: Mapping[str, str], accept: str = JSON) -> dict[str, Any]:
        """An answer's document.

        Raises:
            TooLargeError: It is longer than `MOST_BYTES`.
            ApiServerError: There is none.
        """
        limit = aiohttp.ClientTimeout(total=_ANSWER_S, sock_connect=_CONNECT_S)
        async with self._answer(path, query, limit, accept) as response:
            return parsed(await _read(response, path))

    async def watch(self, path: str, query: Mapping[str, str]) -> AsyncIterator[bytes | CutLine]:
        """The lines of a watch until the server ends it.

        Raises:
            ApiServerError: It was refused, broke or went silent.
        """
        limit = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=self._silence_s)
        async with self._answer(path, query, limit) as response:
            rest, cut = b"", None
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if cut is not None:
                        yield cut
                        cut = None
                    elif line:
                        yield line
                if len(rest) > MOST_BYTES:
                    cut = cut or CutLine(rest[:_HEAD_BYTES])
                    rest = b""

    @asynccontextmanager
    async def _answer(
        self, path: str, query: Mapping[str, str], limit: aiohttp.ClientTimeout, accept: str = JSON
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        response = None
        try:
            # not compressed: a bound on bytes is one on what they become
            headers = {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": "kvtier-picker"}
            await self._client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
            url = f"{self._host}{path}?{urlencode(query)}"
            answer = await self._client.rest_client.request(
                "GET", url, headers=headers, _request_timeout=limit
            )
            response = answer.response
            if response.status != _OK:
                raise _refusal(path, response.status, await _read(response, path))
            yield response
        except _NO_ANSWER as error:
            raise ApiServerError(f"{path}: no answer: {str(error) or type(error).__name__}") from error
        finally:
            if response is not None:
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()  # TLS that closes reads on for up to 30 s
                response.close()


async def _read(response: aiohttp.ClientResponse, path: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MOST_BYTES:
            body.clear()  # the error's frames live until the next collection of garbage
            raise TooLargeError(f"{path}: an answer of more than {MOST_BYTES} bytes")
    return bytes(body)


def parsed(text: bytes) -> dict[str, Any]:
    """A document, or a line of a watch.

    Raises:
        ApiServerError: It is none.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ApiServerError(f"the API server sends something that is not JSON: {text[:60]!r}") from error
    if not isinstance(document, dict):
        raise ApiServerError(f"the API server sends something that is not an object: {text[:60]!r}")
    return document


def status_error(path: str, status: Mapping[str, Any]) -> ApiServerError:
    """The error that a metav1.Status tells of."""
    code, message = status.get("code"), status.get("message") or status.get("reason") or "failed"
    return (ExpiredError if code == _GONE else ApiServerError)(f"{path}: {code}: {message}")


def _refusal(path: str, code: int, content: bytes) -> ApiServerError:
    try:
        status = parsed(content)
    except ApiServerError:
        status = {}
    return status_error(path, {"message": content[:80].decode(errors="replace"), **status, "code": code})
