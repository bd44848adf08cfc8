"""Reads KVCacheTiers and what stands beside them from files, folders, addresses and standard input."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from kvtier_common.errors import MalformedError
from kvtier_common.formats.yaml_text import read_yaml
from kvtier_common.one_line import one_line
from kvtier_common.terminal.say import say
from kvtier_operator.api.edits import Edit, apply_edits
from kvtier_operator.api.former import ALL, FormerWord, former_words
from kvtier_operator.api.parse import parse_resource
from kvtier_operator.api.resource import API_VERSION, GROUP, KIND, KVCacheTier
from kvtier_operator.cli.inputs.what_if import OPTIONS
from kvtier_operator.errors import InvalidInputError, Problem
from kvtier_operator.planning.base.owner_policy import OwnerPolicy, owner_policy

_MOST_BYTES: Final = 64 << 20


def read_whole(file: BinaryIO, source: str, field: str = "", most_bytes: int = _MOST_BYTES) -> bytes:
    """What is in an open file, unless it is longer than any such file."""
    content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        message = (
            f"has more than {most_bytes >> 20} MiB, which nothing that is read here has; name another file"
        )
        raise InvalidInputError(source, Problem(field, message))
    return content


def read_regular(path: Path, field: str, most_bytes: int = _MOST_BYTES) -> bytes:
    """What is in a file on a disk; a pipe or a device could keep a reader waiting for ever."""
    try:
        if not path.is_file() and not path.is_dir():
            path.stat()  # says why, where there is nothing
            raise InvalidInputError(
                str(path), Problem(field, "cannot be read: it is a pipe or a device; name a regular file")
            )
        with path.open("rb") as file:
            return read_whole(file, str(path), field, most_bytes)
    except OSError as error:
        raise InvalidInputError(str(path), Problem(field, f"cannot be read: {error.strerror}")) from error


def read_documents(text: str | bytes, source: str) -> Iterator[object]:
    """The documents of a YAML or JSON stream but for empty ones, as plain Python values that JSON has too."""
    try:
        yield from read_yaml(text)
    except MalformedError as error:
        raise InvalidInputError(source, Problem("", f"not YAML: {error}")) from error


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Adds the file of a resource to an InvalidInputError that is raised inside."""
    try:
        yield
    except InvalidInputError as error:
        raise error.within(source) from error


# What kubectl reads from a folder, and only from that one (k8s.io/cli-runtime, resource.FileExtensions).
_SUFFIXES: Final = (".json", ".yaml", ".yml")
_STDIN: Final = "-"
_MOST_KIND: Final = 63
_MOST_KINDS: Final = 8
_WRITE_ONE: Final = f"; write one with apiVersion: {API_VERSION}, kind: {KIND}"


ConfigMaps = Mapping[tuple[str, str], tuple[str, Mapping[str, Any]]]
"""ConfigMaps by namespace and name, each with where it came from."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Resources and ConfigMaps that were read from files."""

    resources: tuple[tuple[str, KVCacheTier], ...]  # the KVCacheTiers in order, each with where it came from
    config_maps: ConfigMaps  # the ConfigMaps beside them, by namespace and name, each with where it came from


def load_resources(paths: Sequence[str]) -> tuple[tuple[str, KVCacheTier], ...]:
    """Every KVCacheTier in the given places, in order, each with where it came from; raises as `load`."""
    return load(paths).resources


def load(paths: Sequence[str], edits: Sequence[Edit] = ()) -> Loaded:
    """Every KVCacheTier in the given places, with these fields set, and the ConfigMaps that they may name.

    Other objects beside them are left alone. Words of earlier versions are read as those of now, with a
    warning on standard error. A place without a KVCacheTier, and the same one twice, are InvalidInputErrors.
    """
    config_maps: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    loaded = [one for path in paths for one in _load(path, config_maps, edits, alone=len(paths) == 1)]
    _require_resources(loaded, paths)
    return Loaded(tuple(loaded), config_maps)


def _require_resources(loaded: Sequence[tuple[str, KVCacheTier]], paths: Sequence[str]) -> None:
    """Raises InvalidInputError where there are none, or one of a name is there twice."""
    if not loaded:
        raise InvalidInputError(
            " ".join(paths), Problem("", f"{'has' if len(paths) == 1 else 'have'} no {KIND}{_WRITE_ONE}")
        )
    seen: dict[tuple[str, str], str] = {}
    for source, resource in loaded:
        key = (resource.metadata.namespace, resource.metadata.name)
        if key in seen:
            raise InvalidInputError(
                source,
                Problem("metadata.name", f"{key[0]}/{key[1]} is there twice, first in {seen[key]}; keep one"),
            )
        seen[key] = source


@dataclass(frozen=True, slots=True)
class LoadedBeside:
    """Resources that were read from files, and all else there."""

    loaded: Loaded
    # objects of others in their order, each with where it came from
    others: tuple[tuple[str, Mapping[str, Any]], ...]


def load_beside(paths: Sequence[str]) -> LoadedBeside:
    """Every KVCacheTier in the given places, and the objects of others beside them; raises as `load`.

    ConfigMaps are among the others too.
    """
    others: list[tuple[str, Mapping[str, Any]]] = []
    ours: list[tuple[str, KVCacheTier]] = []
    config_maps: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    for path in paths:
        for source, document in _documents(path):
            if _is_ours(document, named=False):
                ours.append((source, parse_resource(document, source)))
            elif not isinstance(document, dict):
                raise InvalidInputError(source, Problem("", "not a Kubernetes object"))
            else:
                others.append((source, document))
                if document.get("kind") == "ConfigMap":
                    config_maps[_key(document)] = (source, document)
    _require_resources(ours, paths)
    return LoadedBeside(Loaded(tuple(ours), config_maps), tuple(others))


def _load(
    path: str,
    config_maps: dict[tuple[str, str], tuple[str, Mapping[str, Any]]],
    edits: Sequence[Edit],
    *,
    alone: bool,
) -> Iterator[tuple[str, KVCacheTier]]:
    resources, kinds = 0, set[str]()
    for source, document in _documents(path):
        if isinstance(document, dict) and document.get("kind") == "ConfigMap":
            config_maps[_key(document)] = (source, document)
        if not _is_ours(document, named=not _is_folder(path)):
            kind = document.get("kind") if isinstance(document, dict) else type(document).__name__
            kinds.add(one_line(str(kind), _MOST_KIND))
            continue
        resources += 1
        changed = apply_edits(document, edits, source) if edits and isinstance(document, dict) else document
        resource = parse_resource(changed, f"{source} with {OPTIONS}" if edits else source)
        for field, word in former_words(document, *ALL):
            say(f"{source}: {field}: {_former_text(word)}", err=True)
        yield source, resource
    if not resources and (alone or kinds != {"ConfigMap"}):
        beside = f"; it has {', '.join(sorted(kinds)[:_MOST_KINDS])}" if kinds else ""
        empty = f"has no {KIND} in a .yaml, .yml or .json file" if _is_folder(path) else "is empty"
        what = f"has no {KIND}{beside}" if kinds else empty
        raise InvalidInputError(path, Problem("", f"{what}{_WRITE_ONE}"))


def _key(document: Mapping[str, Any]) -> tuple[str, str]:
    fields = document.get("metadata")
    metadata = fields if isinstance(fields, Mapping) else {}
    return str(metadata.get("namespace") or "default"), str(metadata.get("name"))


def _documents(path: str) -> Iterator[tuple[str, object]]:
    if path == _STDIN:
        yield from _stream(read_whole(sys.stdin.buffer, _STDIN), _STDIN)
        return
    if _is_url(path):
        from kvtier_operator.cli.inputs.url import read_url  # noqa: PLC0415 - files need no TLS

        yield from _stream(read_url(path), path)
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


def _is_url(path: str) -> bool:
    return "://" in path


def _is_folder(path: str) -> bool:
    return not _is_url(path) and Path(path).is_dir()


def _is_read(path: Path) -> bool:
    return path.suffix in _SUFFIXES and path.is_file()


def _stream(content: bytes, name: str) -> Iterator[tuple[str, object]]:
    """The objects of one file, the items of a List (as `kubectl get -o yaml` prints them) one by one."""
    documents = [*_objects_in(read_documents(content, name))]
    for index, document in enumerate(documents):
        yield (name if len(documents) == 1 else f"{name} (document {index + 1})"), document


def _objects_in(documents: Iterator[object]) -> Iterator[object]:
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


def _former_text(word: FormerWord) -> str:
    if word.was is False:
        return (
            f"Off without quotes is false in YAML; taken for {word.now} here, but kubectl sends false and "
            f"the cluster refuses it: write {word.now}"
        )
    return f"{word.was} is called {word.now} now, and read for this version only: write {word.now}"


def policy_file(path: Path) -> OwnerPolicy:
    """What stands in it: the limits, or the chart's values with them at `operator.policy`."""
    source = str(path)
    documents = [*read_documents(read_regular(path, ""), source)] or [None]
    if len(documents) > 1:
        raise InvalidInputError(source, Problem("", f"{len(documents)} documents; keep one"))
    [document] = documents
    if not isinstance(document, Mapping) or "operator" not in document:
        return owner_policy(document, source)
    values = document["operator"]
    if not isinstance(values, Mapping) or "policy" not in values:
        message = "no policy in it; a file of limits has them at its root or at operator.policy"
        raise InvalidInputError(source, Problem("operator", message))
    return owner_policy(values["policy"], source, "operator.policy")
