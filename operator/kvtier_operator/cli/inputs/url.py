"""Reads a file by its https:// address, as kubectl and helm do."""

import ssl
from collections.abc import Iterator
from http.client import HTTPException, HTTPMessage, HTTPResponse
from time import monotonic
from typing import IO, Final
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from kvtier_common.one_line import one_line
from kvtier_operator.errors import InvalidInputError, Problem

_HTTPS: Final = "https"
_TIMEOUT_S: Final = 10.0
"""Until a connection, and each piece of an answer, is there."""
_WHOLE_S: Final = 30.0
_PIECE_BYTES: Final = 64 << 10
_MOST_BYTES: Final = 8 << 20
_MOST_SAID: Final = 200
"""Characters of what a server says, in an error."""


def read_url(url: str) -> bytes:
    """What is at an https address, by certificates that the system trusts and the environment's proxy.

    Redirects lead to https alone. Whatever goes wrong is an InvalidInputError.
    """
    parts = _split(url)
    if parts.scheme != _HTTPS:
        raise _refusal(url, "only https:// addresses are read; download it, and give the file")
    if parts.username is not None:
        address = f"{_HTTPS}://{parts.hostname}{parts.path}"
        raise _refusal(address, "has a user in it, which is not supported; download it, and give the file")
    opener = build_opener(HTTPSHandler(context=ssl.create_default_context()), _ToHttps(url))
    try:
        with opener.open(Request(url), timeout=_TIMEOUT_S) as answer:  # noqa: S310 - https, as was seen
            if answer.headers.get_content_type() == "text/html":
                raise _refusal(
                    url, "is a web page; give the address of the file itself, such as GitHub's Raw"
                )
            return b"".join(_pieces(answer, url))
    except HTTPError as error:
        error.close()
        raise _refusal(url, f"cannot be read: {error.code} {error.reason}".rstrip()) from error
    except (OSError, HTTPException, ValueError) as error:
        raise _refusal(url, f"cannot be read: {_reason(error)}") from error


class _ToHttps(HTTPRedirectHandler):
    """Follows a few redirects, which nobody on the way can read or change."""

    max_redirections = 5

    def __init__(self, url: str) -> None:
        self._url = url

    def redirect_request(  # noqa: PLR0913, PLR0917 - urllib's own signature
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The next request; an InvalidInputError where it would not be of https."""
        if _split(newurl).scheme != _HTTPS:
            fp.close()
            raise _refusal(self._url, f"sends on to {newurl}, and only https:// addresses are read")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _pieces(answer: HTTPResponse, url: str) -> Iterator[bytes]:
    ends, read_bytes = monotonic() + _WHOLE_S, 0
    while piece := answer.read1(_PIECE_BYTES):
        read_bytes += len(piece)
        if read_bytes > _MOST_BYTES:
            raise _refusal(url, f"has more than {_MOST_BYTES >> 20} MiB, which no such file has")
        if monotonic() > ends:
            raise _refusal(url, f"cannot be read: it takes more than {_WHOLE_S:g} s")
        yield piece


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise _refusal(url, f"is no address: {error}") from error


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return f"no answer for {_TIMEOUT_S:g} s"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror
    return str(cause) or type(cause).__name__


def _refusal(url: str, message: str) -> InvalidInputError:
    return InvalidInputError(url, Problem("", one_line(message, _MOST_SAID)))
