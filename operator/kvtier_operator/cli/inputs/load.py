"""Reads KVCacheTiers from files, folders and standard input."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kvtier_common.one_line import one_line
from kvtier_common.terminal.say import say
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import API_VERSION, GROUP, KIND, KVCacheTier
from kvtier_operator.cli.inputs.model_files import ConfigMaps
from kvtier_operator.cli.inputs.whole_file import read_whole
from kvtier_operator.cli.inputs.yaml_documents import read_documents
from kvtier_operator.errors import InvalidInputError, Problem

# What kubectl reads from a folder, and only from that one (k8s.io/cli-runtime, resource.FileExtensions).
_SUFFIXES: Final = (".json", ".yaml", ".yml")
_STDIN: Final = "-"
_MOST_KIND: Final = 63
_MOST_KINDS: Final = 8
_WRITE_ONE: Final = f"; write one with apiVersion: {API_VERSION}, kind: {KIND}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Resources and ConfigMaps that were read from files.

    Attributes:
        resources: The KVCacheTiers in order, each with where it came from.
        config_maps: The ConfigMaps beside them, by namespace and name, each with where it came from.
    """

    resources: tuple[tuple[str, KVCacheTier], ...]
    config_maps: ConfigMaps


def load_resources(paths: Sequence[str]) -> tuple[tuple[str, KVCacheTier], ...]:
    """Every KVCacheTier in the given places, in order, each with where it came from; raises as `load`."""
    return load(paths).resources


def load(paths: Sequence[str]) -> Loaded:
    """Every KVCacheTier in the given places, and the ConfigMaps that they may name.

    Other objects beside them are left alone. A policy that YAML read as false is taken for `Off`, with a
    warning on standard error.

    Args:
        paths: Files, folders (their .yaml, .yml and .json files) or `-` for standard input.

    Raises:
        InvalidInputError: A place that cannot be read, is not YAML or holds no KVCacheTier; a resource that
            is not valid; or the same resource twice.
    """
    config_maps: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    loaded = [found for path in paths for found in _load(path, config_maps, alone=len(paths) == 1)]
    if not loaded:
        raise InvalidInputError(" ".join(paths), Problem("", f"have no {KIND}{_WRITE_ONE}"))
    seen: dict[tuple[str, str], str] = {}
    for source, resource in loaded:
        key = (resource.metadata.namespace, resource.metadata.name)
        if key in seen:
            raise InvalidInputError(
                source,
                Problem("metadata.name", f"{key[0]}/{key[1]} is there twice, first in {seen[key]}; keep one"),
            )
        seen[key] = source
    return Loaded(tuple(loaded), config_maps)


def _load(
    path: str, config_maps: dict[tuple[str, str], tuple[str, Mapping[str, Any]]], *, alone: bool
) -> Iterator[tuple[str, KVCacheTier]]:
    found, kinds = 0, set[str]()
    for source, document in _documents(path):
        if isinstance(document, dict) and document.get("kind") == "ConfigMap":
            config_maps[_key(document)] = (source, document)
        if not _is_ours(document, named=not Path(path).is_dir()):
            kind = document.get("kind") if isinstance(document, dict) else type(document).__name__
            kinds.add(one_line(str(kind), _MOST_KIND))
            continue
        found += 1
        resource = parse_resource(document, source)
        for field in _unquoted_off(document, ""):
            say(
                f"{source}: {field}: Off without quotes is false in YAML; taken for Off here, but kubectl "
                'sends false and the cluster refuses it: leave it out or write "Off"',
                err=True,
            )
        yield source, resource
    if not found and (alone or kinds != {"ConfigMap"}):
        beside = f"; it has {', '.join(sorted(kinds)[:_MOST_KINDS])}" if kinds else ""
        empty = f"has no {KIND} in a .yaml, .yml or .json file" if Path(path).is_dir() else "is empty"
        what = f"has no {KIND}{beside}" if kinds else empty
        raise InvalidInputError(path, Problem("", f"{what}{_WRITE_ONE}"))


def _key(document: Mapping[str, Any]) -> tuple[str, str]:
    found = document.get("metadata")
    metadata = found if isinstance(found, Mapping) else {}
    return str(metadata.get("namespace") or "default"), str(metadata.get("name"))


def _documents(path: str) -> Iterator[tuple[str, object]]:
    if path == _STDIN:
        yield from _stream(read_whole(sys.stdin.buffer, _STDIN), _STDIN)
        return
    place = Path(path)
    try:
        files = sorted(filter(_is_read, place.iterdir())) if place.is_dir() else [place]
        for file in files:
            with file.open("rb") as opened:
                content = read_whole(opened, str(file))
            yield from _stream(content, str(file))
    except OSError as error:
        # in a folder, the file of it
        where = str(error.filename or path)
        raise InvalidInputError(where, Problem("", f"cannot be read: {error.strerror}")) from error


def _is_read(path: Path) -> bool:
    return path.suffix in _SUFFIXES and path.is_file()


def _stream(content: bytes, name: str) -> Iterator[tuple[str, object]]:
    """The objects of one file, the items of a List (as `kubectl get -o yaml` prints them) one by one."""
    documents = [*_flattened(read_documents(content, name))]
    for index, document in enumerate(documents):
        yield (name if len(documents) == 1 else f"{name} (document {index + 1})"), document


def _flattened(documents: Iterator[object]) -> Iterator[object]:
    for document in documents:
        match document:
            case {"kind": "List" | "KVCacheTierList", "items": [*items]}:
                yield from items
            case _:
                yield document


def _is_ours(document: object, *, named: bool) -> bool:
    """Whether to read a document as a KVCacheTier: by its kind or group.

    In a file that was named it is one too when it says nothing of itself; in a folder that is something else.
    """
    if not isinstance(document, dict):
        return named
    kind, group = document.get("kind"), str(document.get("apiVersion", "")).split("/")[0]
    return kind == KIND or group == GROUP or (named and kind is None)


def _unquoted_off(value: object, path: str) -> Iterator[str]:
    """Paths of the policies that YAML read as false."""
    if not isinstance(value, dict):
        return
    for key, each in value.items():
        below = f"{path}.{key}".removeprefix(".")
        if key == "policy" and each is False:
            yield below
        yield from _unquoted_off(each, below)
