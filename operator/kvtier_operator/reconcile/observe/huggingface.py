"""A model's configuration from Hugging Face, or from the mirror that HF_ENDPOINT names.

Few requests, to few hosts: whoever answers says neither where else to ask nor who gets a token.
"""

import asyncio
import os
import re
import socket
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any, Final
from urllib.parse import quote
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import ResolveResult
from yarl import URL

from kvtier_common.errors import KvtierError, UnreachableError
from kvtier_common.http.answer import read_body
from kvtier_common.one_line import one_line
from kvtier_operator.api.spec.model_source import REVISION_PATTERN
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.model_shape.config.model_files import (
    CONFIG,
    PARAMS,
    QUANTIZATION,
    names_of,
    one_config,
    parse_file,
)

_TRANSLATED: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""IPv6 addresses that end in one of IPv4: of a translator (RFC 6052), and of old (RFC 4291, 2.5.5.1)."""
Address = IPv4Address | IPv6Address
_ENDPOINT: Final = "https://huggingface.co"
_HUB_DOMAINS: Final = ("huggingface.co", "hf.co")
"""With all below: where the Hub keeps files, by its own list (https://huggingface.co/.well-known/meta.json)."""
_NAME: Final = re.compile(r"([A-Za-z0-9][\w.-]{0,95}/)?[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_HOST: Final = re.compile(r"[a-z0-9_.-]+(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
_MOST_BYTES: Final = 2 << 20
_MOST_REDIRECTS: Final = 3
_MOST_SAID: Final = 200
"""Characters of what a server says, in an error."""
_AT_A_TIME: Final = 2
_TIMEOUT_S: Final = 10.0
_FOUND, _NOT_FOUND = 200, 404
_NOT_FOR_EVERYONE: Final = {401, 403}
_GATED: Final = "GatedRepo"
_REDIRECTS: Final = {301, 302, 303, 307, 308}
_HTTPS: Final = 443
Place = tuple[str, str, int | None]
"""Scheme, host and port."""


class NotPublicError(KvtierError):
    """The Hub has no model of this name, or not for everyone."""

    def __init__(self, message: str, *, needs_token: bool = False) -> None:
        super().__init__(message)
        self.needs_token = needs_token  # whether a token of somebody who is let in would help


class HubClient:
    """Asks the Hub for the configuration of a model by name.

    A redirect is followed to the endpoint itself, to hosts that KVTIER_HUB_HOSTS names, and from an endpoint
    with https to the Hub's own: these at addresses of the Internet, unless the endpoint has none either. The
    header `authorization` tells the endpoint, and nobody else, who asks.
    """

    def __init__(self, authorization: str = "") -> None:
        self._endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or _ENDPOINT
        self._place = _endpoint_place(self._endpoint)
        self._named = _named_places(os.environ.get("KVTIER_HUB_HOSTS", ""))
        self._authorization = authorization
        self._turns = asyncio.Semaphore(_AT_A_TIME)

    async def config(
        self, name: str, revision: str | None, known: Mapping[str, Mapping[str, Any]] | None = None
    ) -> tuple[dict[str, Any], str]:
        """Configuration of a model, and where it came from; the files that are `known` are not asked for.

        A NotPublicError where the Hub has no such model for everyone, an UnreachableError where it gave no
        answer or sends on to somebody else: then trying again may help.
        """
        if _NAME.fullmatch(name) is None:
            raise NotPublicError(f"{name!r} is no name of a model on {self._endpoint}")
        if revision is not None and re.fullmatch(REVISION_PATTERN, revision) is None:
            raise NotPublicError(f"{one_line(revision, _MOST_SAID)!r} is no revision of a model")
        if self._turns.locked():  # a Hub that is slow must not hold up whoever does not need it
            raise UnreachableError(f"{self._endpoint} is asked for others: this one is asked for again")
        where = f"{self._endpoint}/{name}/resolve/{quote(revision or 'main', safe='')}"
        async with self._turns, self._session() as session:
            files = await self._files(session, where, name, known or {})
        return one_config(files), f"{self._endpoint}/{name}, {names_of(files)}"

    def _session(self) -> aiohttp.ClientSession:
        resolver = _HubResolver(self._place[1], frozenset(host for _, host, _ in self._named))
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=resolver),
            headers={"Accept-Encoding": "identity"},  # unpacking has no bound
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def _files(
        self, session: aiohttp.ClientSession, where: str, name: str, known: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Mapping[str, Any]]:
        async def file(one: str) -> Mapping[str, Any] | None:
            return known[one] if one in known else await self._file(session, f"{where}/{one}")

        if config := await file(CONFIG):
            files = {CONFIG: config}
        elif params := await file(PARAMS):
            files = {PARAMS: params}
        else:
            raise NotPublicError(
                f"{self._endpoint} has no config.json of {name!r}: there is no model of that name, its "
                "repository is private, or has no such file"
            )
        if files.get(CONFIG, {}).get("quantization_config") is None and (
            quantization := await file(QUANTIZATION)
        ):
            files[QUANTIZATION] = quantization
        return files

    async def _file(self, session: aiohttp.ClientSession, asked: str) -> Mapping[str, Any] | None:
        """One file of a repository; None where it has no such file."""
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                text = await self._text(session, asked)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            reason = one_line(str(error), _MOST_SAID) or type(error).__name__
            raise UnreachableError(f"no answer to {asked}: {reason}") from error
        return None if text is None else parse_file(text, asked, "spec.model.name")

    async def _text(self, session: aiohttp.ClientSession, asked: str) -> str | None:
        url = URL(asked)
        for _ in range(_MOST_REDIRECTS + 1):
            is_endpoint = _place(url) == self._place
            headers = {"Authorization": self._authorization} if self._authorization and is_endpoint else {}
            async with session.get(
                url, headers=headers, proxy=_proxy(url), allow_redirects=False
            ) as response:
                if response.status not in _REDIRECTS:
                    return await self._body(response, asked)
                location = response.headers.get("Location", "")
                url = self._redirect_target(asked, url.join(URL(location)))
        raise UnreachableError(f"{asked}: more than {_MOST_REDIRECTS} redirects")

    async def _body(self, response: aiohttp.ClientResponse, asked: str) -> str | None:
        if response.status == _NOT_FOUND:
            return None
        if response.status in _NOT_FOR_EVERYONE:
            raise NotPublicError(_kept_from(asked, response), needs_token=True)
        if response.status != _FOUND:
            reason = one_line(response.reason or "", _MOST_SAID)
            raise UnreachableError(f"{asked}: {response.status} {reason}".rstrip())
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise UnreachableError(f"{asked}: the answer is packed although that was not asked for")
        body = await read_body(response.content, asked, _MOST_BYTES, asyncio.Semaphore(1))
        return body.decode(errors="replace")

    def _redirect_target(self, asked: str, url: URL) -> URL:
        """Where a redirect leads, without a name and password of the server's choice."""
        scheme, host, port = place = _place(url)
        is_hub = self._place[0] == scheme == "https" and port == _HTTPS and _is_hub_host(host)
        if place != self._place and place not in self._named and not is_hub:
            there = one_line(f"{scheme}://{host}:{port}", _MOST_SAID)
            raise UnreachableError(
                f"{asked}: sent on to {there}, which is neither {self._endpoint} nor a host of the Hub's; "
                "KVTIER_HUB_HOSTS names others, asked by https"
            )
        return url.with_user(None)


class _HubResolver(aiohttp.ThreadedResolver):
    """Finds no private address for a host that a redirect named, unless the endpoint has one."""

    def __init__(self, endpoint: str, named: frozenset[str]) -> None:
        super().__init__()
        self._endpoint, self._named = endpoint, named

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        there = await super().resolve(host, port, family)
        if host == self._endpoint or host in self._named or not _is_hub_host(host):
            return there  # what is none of these is a proxy
        private = [address["host"] for address in there if not is_public(address["host"])]
        if private:
            endpoint = await super().resolve(self._endpoint, port, family)
            if all(is_public(address["host"]) for address in endpoint):
                raise UnreachableError(f"{host} is at {private[0]}, which is no address of the Internet")
        return there


def _kept_from(asked: str, response: aiohttp.ClientResponse) -> str:
    """The Hub names what it is in a header; without a token it hides a name that is nobody's so, too."""
    if response.headers.get("X-Error-Code") == _GATED:
        return f"{asked}: {response.status}, the model is gated: accept its terms on its page"
    return f"{asked}: {response.status}, the model is gated or private, or there is none of that name"


def _place(url: URL) -> Place:
    return url.scheme, url.host or "", url.port


def _is_hub_host(host: str) -> bool:
    return any(host == hub_domain or host.endswith(f".{hub_domain}") for hub_domain in _HUB_DOMAINS)


def _endpoint_place(endpoint: str) -> Place:
    """Scheme, host and port of the endpoint, which statuses show as it is written."""
    place = _place_of_text(endpoint)
    is_plain = endpoint.isprintable() and not re.search(r"[@?#]", endpoint)
    if place is None or place[0] not in {"http", "https"} or not is_plain:
        message = "is no base URL; write https://HOST or http://HOST:PORT/PATH, with no password and no query"
        raise InvalidInputError("", Problem("HF_ENDPOINT", message))
    return place


def _named_places(text: str) -> frozenset[Place]:
    """HOST or HOST:PORT, by commas."""
    places = set()
    for word in text.replace(",", " ").split():
        place = _place_of_text(f"https://{word}") if _HOST.fullmatch(word) else None
        if place is None:
            message = (
                f"{one_line(word, _MOST_SAID)!r} is no host; write HOST or HOST:PORT, separated by commas"
            )
            raise InvalidInputError("", Problem("KVTIER_HUB_HOSTS", message))
        places.add(place)
    return frozenset(places)


def _place_of_text(text: str) -> Place | None:
    try:
        url = URL(text)
    except ValueError:
        return None
    return _place(url) if url.host else None


def _proxy(url: URL) -> str | None:
    """As the environment says; aiohttp's own look-up takes passwords of a netrc file along, for any host."""
    return None if proxy_bypass(url.host or "") else getproxies().get(url.scheme)


def is_public(text: str) -> bool:
    """Whether an address is one of the Internet: of no machine, no link and no private network."""
    return all(address.is_global and not address.is_multicast for address in meanings(ip_address(text)))


def meanings(address: Address) -> Iterator[Address]:
    """Where packets to an address may end: there, or at the IPv4 address that stands in it."""
    if isinstance(address, IPv4Address):
        yield address
        return
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address.packed[:14] != bytes(14):  # `::` and `::1` are addresses of their own
        inner = next(
            (IPv4Address(address.packed[12:]) for network in _TRANSLATED if address in network), None
        )
    if address.ipv4_mapped is None:
        yield address
    if inner is not None:
        yield inner
