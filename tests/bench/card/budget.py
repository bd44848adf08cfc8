"""Which piece of a run comes next, and which are left out for want of time: the least important ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_AT_MOST: Final = 3  # times what a piece is expected to take, until it is ended


@dataclass(frozen=True, slots=True)
class Piece:
    """What is measured in one process; its name is that of its file."""

    kind: str  # copies, life or kind
    what: str  # a side or a kind of model; empty for copies
    turn: int  # of a life, from 1
    expected_s: float  # on a card, until one of its kind has been measured

    @property
    def name(self) -> str:
        """Such as `life.kvtier.1`."""
        return ".".join(filter(None, (self.kind, self.what, str(self.turn or ""))))

    @property
    def limit_s(self) -> float:
        """After so long it is ended."""
        return _AT_MOST * self.expected_s


Done = Mapping[str, Mapping[str, Any]]
"""What has been measured or failed, by a piece's name, each with its `seconds`."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds of a whole run, and of one call of the command."""

    whole_s: float
    call_s: float


@dataclass(frozen=True, slots=True)
class Choice:
    """What comes next."""

    piece: Piece | None  # None: nothing in this call
    left: int  # pieces for another call, if nothing comes in this one


def choose(pieces: Sequence[Piece], done: Done, budget: Budget, called_s: float) -> Choice:
    """Choose the most important piece that is not done and fits both budgets.

    One that does not fit the whole is left out, for a later one that is shorter; one that only this call has
    no time for waits for the next call, and so does everything behind it.
    """
    spent_s = sum(float(each["seconds"]) for each in done.values())
    fitting = [
        (piece, expected_s)
        for piece, expected_s in _ahead(pieces, done)
        if spent_s + expected_s <= budget.whole_s
    ]
    if not fitting:
        return Choice(None, 0)
    piece, expected_s = fitting[0]
    if called_s + expected_s > budget.call_s:
        return Choice(None, len(fitting))
    return Choice(piece, len(fitting))


def left_out(pieces: Sequence[Piece], done: Done) -> list[str]:
    """Return the names of pieces that have not been measured."""
    return [piece.name for piece, _ in _ahead(pieces, done)]


def _ahead(pieces: Sequence[Piece], done: Done) -> Iterator[tuple[Piece, float]]:
    """Pieces that are not done, each with the seconds that it is expected to take."""
    for piece in pieces:
        if piece.name in done:
            continue
        alike = (done[one.name] for one in pieces if one.kind == piece.kind and one.name in done)
        measured = [float(each["seconds"]) for each in alike if "figures" in each]
        yield piece, max(measured, default=piece.expected_s)
