"""Finds fields in the models: by where they are, by their name, and what stands beside them."""

from collections.abc import Iterator
from typing import get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kvtier_operator.api.resource import KVCacheTier

Location = tuple[int | str, ...]


def path_of(location: Location) -> str:
    """A location as Kubernetes writes it: list items and a map's keys in brackets.

    For instance `spec.engine.env[0].name` or `spec.engine.nodeSelector[kubernetes.io/arch]`.
    """
    path = ""
    for position, part in enumerate(location):
        parent = field_at(location[:position])
        in_map = parent is not None and get_origin(parent.annotation) is dict
        path += f"[{part}]" if in_map or isinstance(part, int) else f".{part}"
    return path.removeprefix(".")


def model_in(annotation: object) -> type[BaseModel] | None:
    """The model that a field's type holds, whether optional, in a list or alone; None where it holds none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for each in get_args(annotation) if (found := model_in(each))), None)


def field_at(location: Location) -> FieldInfo | None:
    """The field at a location; None for the resource itself and where the models do not say."""
    model: type[BaseModel] | None = KVCacheTier
    field: FieldInfo | None = None
    for part in location:
        if isinstance(part, int):
            continue
        if model is None:
            return None
        field = next((info for name, info in model.model_fields.items() if part in (info.alias, name)), None)
        model = model_in(field.annotation) if field else None
    return field


def names_at(location: Location) -> list[str]:
    """Names of the fields that the mapping at a location may have, in the order they are written."""
    field = field_at(location)
    model = model_in(field.annotation) if field else (None if location else KVCacheTier)
    return [info.alias or name for name, info in model.model_fields.items()] if model else []


def paths_named(name: str, model: type[BaseModel] = KVCacheTier, path: str = "") -> Iterator[str]:
    """Paths of all fields of that name that a user may write; `[]` stands for a list's items."""
    for attribute, info in model.model_fields.items():
        alias = info.alias or attribute
        below = f"{path}.{alias}".removeprefix(".")
        if alias == name:
            yield below
        inner = model_in(info.annotation)
        if inner and below != "status":
            yield from paths_named(name, inner, below + ("[]" if "list[" in str(info.annotation) else ""))
