"""The figures in so few bytes that Kubernetes keeps them: as a container's termination message."""

import json
from collections.abc import Mapping
from typing import Any, Final

LIMIT_BYTES: Final = 4096
"""Of one container's termination message; Kubernetes cuts a longer one (pods, Termination message)."""
_FOR_AN_ERROR_BYTES: Final = 1024
_DIGITS: Final = 4
"""That count: a benchmark repeats no closer."""
_OF_A_ROUND: Final = ("mean_ttft_s", "p90_ttft_s", "mean_e2e_s", "total_tokens_per_s", "hit_rate")
_OF_A_SIDE: Final = ("ready_s", "cold_s", "device_hit_s", "cpu_tier_s")


def termination_message(report: Mapping[str, Any], about: Mapping[str, str], error: str = "") -> str:
    """Return one line of JSON of at most `LIMIT_BYTES` bytes.

    Args:
        report: parts by name, as they are in the report's file; those without a short form are named.
        about: what was measured and where.
        error: why there is no more; it is cut where it does not fit.
    """
    message: dict[str, Any] = {**about, **({"error": ""} if error else {})}
    left_out: list[str] = []
    room_bytes = LIMIT_BYTES - (_FOR_AN_ERROR_BYTES if error else 0)
    for name, part in report.items():
        short = _SHORT[name](part) if name in _SHORT else None
        if short is None or _bytes(message | {name: short, "left_out": list(report)}) > room_bytes:
            left_out.append(name)
        else:
            message[name] = short
    if left_out:
        message["left_out"] = left_out
    if error:
        message["error"] = _cut(error, message)
    return _text(message)


def _cut(error: str, message: Mapping[str, Any]) -> str:
    """Keep an error's end, where an engine says why it died."""
    while error and _bytes({**message, "error": error}) > LIMIT_BYTES:
        error = error[len(error) // 16 + 1 :]
    return error


def _text(message: Mapping[str, Any]) -> str:
    return json.dumps(_rounded(message), separators=(",", ":"))


def _bytes(message: Mapping[str, Any]) -> int:
    return len(_text(message).encode())


def _rounded(value: Any) -> Any:  # noqa: ANN401 - what JSON has
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value


def _ttft(part: Mapping[str, Any]) -> dict[str, Any]:
    figures = {"prompt_tokens": part["prompt_tokens"], "outputs_equal": part["outputs_equal"]}
    if "sides" in part:
        return figures | {side: _only(each, _OF_A_SIDE) for side, each in part["sides"].items()}
    return figures | _only(part, _OF_A_SIDE)


def _workloads(part: Mapping[str, Any]) -> dict[str, Any]:
    sections = {name: section for name, section in part.items() if isinstance(section, Mapping)}
    return {name: _section(section) for name, section in sections.items()}


def _section(section: Mapping[str, Any]) -> dict[str, Any]:
    sides = section.get("sides") or {
        side: section["kvtier"][name] for side, name in (("none", "device_cache_alone"), ("kvtier", "with"))
    }
    return {
        "requests_differing": section["requests_differing"],
        **{
            side: {name: each[name]["median"] for name in _OF_A_ROUND if name in each}
            for side, each in sides.items()
        },
    }


def _only(figures: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: figures[name] for name in names if name in figures}


_SHORT: Final = {"ttft": _ttft, "workloads": _workloads}
