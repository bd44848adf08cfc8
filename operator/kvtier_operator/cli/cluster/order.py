"""What is told to engines."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """What engines are told."""

    arguments: tuple[str, ...]  # of the connector's control program: a verb, and what it takes
    stdin: bytes = b""  # a prompt a line, in JSON
    limit_s: float = 60.0  # how long an engine may take
