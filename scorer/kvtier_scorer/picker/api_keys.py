"""Keeps Envoy's list of API keys as a mounted Secret has them: each entry one key, its name the client's.

Envoy's filter api_key_auth takes keys from its configuration alone, which it reads from a file. So the keys
pass through neither the operator nor a ConfigMap, and a changed Secret needs no restart.
"""

import json
import logging
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kvtier_scorer.config.contract import CLIENT, KEYS_FILTER

_LOG: Final = logging.getLogger(__name__)
_LOOK_S: Final = 2.0
"""Between two looks; the kubelet itself renews a mounted Secret about once a minute."""
_KEY: Final = re.compile(r"[\x21-\x7e]{16,4096}")
_DATA: Final = "..data"
"""Link that the kubelet turns to a new folder, so that all entries change at once."""
_TYPES: Final = "type.googleapis.com/envoy"
_STOP: Final = (signal.SIGTERM, signal.SIGINT)


class NoKeysError(Exception):
    """There is no key that a client could show."""


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """What a Secret's entries say."""

    by_client: Mapping[str, str] = field(repr=False)
    faults: tuple[str, ...]  # what is wrong with entries that are left out, without their content


def read_keys(folder: Path) -> ApiKeys:
    """The keys of a folder, with a file for each client. Raises OSError: it changes just now."""
    # one folder for all of them: between two entries the link may turn
    whole = (folder / _DATA).resolve() if (folder / _DATA).is_symlink() else folder
    by_client: dict[str, str] = {}
    owners: dict[str, str] = {}
    faults = []
    for file in sorted(file for file in whole.iterdir() if file.is_file()):
        key = file.read_bytes().decode(errors="replace").strip()
        if not _KEY.fullmatch(key):
            faults.append(
                f"{file.name} is left out: a key has 16 to 4,096 letters, digits and signs of ASCII"
            )
        elif (owner := owners.setdefault(key, file.name)) != file.name:
            faults.append(f"{file.name} is left out: its key is {owner}'s as well")
        else:
            by_client[file.name] = key
    return ApiKeys(by_client, tuple(faults))


def envoy_filter(keys: ApiKeys, *, passes_on: bool) -> dict[str, Any]:
    """The filter with these keys, as Envoy reads it from a file.

    Args:
        keys: Whom to let in.
        passes_on: Whether the engine gets the client's key.
    """
    credentials = [{"key": key, "client": client} for client, key in keys.by_client.items()]
    settings = {
        "@type": f"{_TYPES}.extensions.filters.http.api_key_auth.v3.ApiKeyAuth",
        "credentials": credentials,
        "key_sources": [{"header": "Authorization"}],
        "forwarding": {"header": CLIENT, "hide_credentials": not passes_on},
    }
    kind = f"{_TYPES}.config.core.v3.TypedExtensionConfig"
    return {"resources": [{"@type": kind, "name": KEYS_FILTER, "typed_config": settings}]}


def keep(folder: Path, file: Path, *, passes_on: bool) -> None:
    """Write the file, and again whenever the keys change, until SIGTERM or SIGINT.

    Raises NoKeysError: there is none at the start. Later that is somebody's wish.
    """
    # as the first process of a container it would get neither
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    written = _first(folder)
    # an Envoy that is there already still lets in whom an earlier start has listed; without one the file's
    # absence keeps it from starting
    if written.by_client or file.exists():
        _write(file, written, passes_on=passes_on)
    if not written.by_client:
        raise NoKeysError("; ".join(written.faults) or "the Secret is not there, or has no entry")
    while signal.sigtimedwait(_STOP, _LOOK_S) is None:
        try:
            keys = read_keys(folder)
        except OSError:
            continue  # at the next look
        if keys != written:
            _write(file, keys, passes_on=passes_on)
            written = keys


def _first(folder: Path) -> ApiKeys:
    try:
        return read_keys(folder)
    except OSError as error:
        raise NoKeysError(f"{folder}: {error.strerror}") from error


def _write(file: Path, keys: ApiKeys, *, passes_on: bool) -> None:
    """By one change of a name, as Envoy looks for."""
    new = file.with_suffix(".new")
    new.touch(0o600)
    new.write_text(json.dumps(envoy_filter(keys, passes_on=passes_on)), encoding="utf-8")
    new.replace(file)
    _LOG.info("keys of %d clients: %s", len(keys.by_client), ", ".join(keys.by_client) or "nobody gets in")
    for fault in keys.faults:
        _LOG.warning("%s", fault)
