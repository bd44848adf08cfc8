"""Which values of a configuration class follow from others, found by making it again with each changed."""

import inspect
import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_FACTORS: Final = (2, 4)
# In place of what is None: a number that divides most others.
_INSTEAD_OF_NONE: Final = 4


@dataclass(frozen=True, slots=True)
class Derived:
    """What follows from what.

    Attributes:
        moved: Fields whose value another one decides.
        other_names: Parameter by field that is the same number under another name.
    """

    moved: frozenset[str]
    other_names: Mapping[str, str]


def made(cls: Any, **values: object) -> Any:  # noqa: ANN401 - of a package without types
    """A configuration of this class; None for one that needs more than that to be made."""
    logging.disable(logging.ERROR)
    try:
        return cls(**values)
    except Exception:  # noqa: BLE001 - whatever the hundreds of classes raise
        return None
    finally:
        logging.disable(logging.NOTSET)


def derived(cls: Any, fields: Collection[str], value_of: Callable[[Any, str], Any]) -> Derived:  # noqa: ANN401 - as above
    """What of these fields follows from the others, or from parameters that are none of them.

    Args:
        cls: The class, which can be made without any values.
        fields: Names of its attributes.
        value_of: Reads one of them.
    """
    config = made(cls)
    own = {name: value_of(config, name) for name in fields}
    moved: set[str] = set()
    copies: dict[str, set[str]] = {}
    for parameter, numbers in _changes(cls, config):
        names = cls.attribute_map
        itself = {parameter, names.get(parameter), *(name for name in names if names[name] == parameter)}
        for number in numbers:
            if (other := made(cls, **{parameter: number})) is None:
                continue  # classes check one number by another
            changed = {name for name in fields if name not in itself and value_of(other, name) != own[name]}
            same = {name for name in changed if value_of(other, name) == number}
            moved |= changed - same
            if parameter in fields or isinstance(number, dict):
                moved |= same
            for name in same:
                copies.setdefault(name, set()).add(parameter)
    copied = {name: each.pop() for name, each in copies.items() if len(each) == 1 and name not in moved}
    moved |= {name for name in copies if name not in copied}
    return Derived(frozenset(moved), copied)


def _changes(cls: Any, config: Any) -> Iterator[tuple[str, list[Any]]]:  # noqa: ANN401 - as above
    """Each parameter with other values for it; of a nested configuration's, one at a time."""
    for parameter in _parameters(cls):
        value = vars(config).get(parameter)  # some differ by layer, and say so when they are asked for
        if isinstance(value, int) and not isinstance(value, bool):
            yield parameter, [factor * value or factor for factor in _FACTORS]
        elif value is None:
            yield parameter, [_INSTEAD_OF_NONE]
        elif parameter in cls.sub_configs:
            inner = {name: getattr(value, name, None) for name in _parameters(type(value))}
            numbers = {name: each for name, each in inner.items() if type(each) is int}
            yield parameter, [{name: _FACTORS[0] * each or 1} for name, each in numbers.items()]


def _parameters(cls: Any) -> list[str]:  # noqa: ANN401 - as above
    own = (each for each in inspect.signature(cls.__init__).parameters.values() if each.name != "self")
    return [each.name for each in own if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
