"""What the second act measured: three ways to use two engines, side by side; no I/O."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, Self

from kvtier_operator.errors import RuntimeFailedError
from kvtier_operator.runtime.demo.plot import seconds
from kvtier_operator.runtime.demo.routing_act.load import RoutingLoad


class Way(StrEnum):
    """How two engines serve one URL."""

    OFF = "tier off, in turns"
    TURNS = "tier on, in turns"
    PICKER = "tier on, picker"


@dataclass(frozen=True, slots=True)
class WayFigures:
    """One way's figures, as `kvtier bench shared-prefix` writes them.

    Attributes:
        seconds: From the first request to the last answer.
        ttft_s: Time to first token of every answer, waiting included.
        ttft_mean_s: Its mean.
        ttft_p90_s: Its 90th percentile.
        e2e_mean_s: Mean time to an answer's end.
        e2e_p90_s: Its 90th percentile.
        tokens_per_s: Tokens of prompts and answers over `seconds`.
        device_hit_rate: Share of prompt tokens found in a device cache, by the engines' own counters.
        tier_hit_rate: Share found in the CPU tier.
        engine_share: Share of all prompt tokens that each engine got.
    """

    seconds: float
    ttft_s: tuple[float, ...]
    ttft_mean_s: float
    ttft_p90_s: float
    e2e_mean_s: float
    e2e_p90_s: float
    tokens_per_s: float
    device_hit_rate: float
    tier_hit_rate: float
    engine_share: tuple[float, ...]

    @classmethod
    def from_bench(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON of `kvtier bench shared-prefix --engine ... --write`.

        Raises:
            RuntimeFailedError: A figure is missing.
        """
        try:
            figures = document["shared_prefix"]
            return cls(
                ttft_s=tuple(figures["ttft_s"]),
                device_hit_rate=figures["hit_rate"]["device"],
                tier_hit_rate=figures["hit_rate"]["tier"],
                engine_share=tuple(figures["engine_share"]),
                **{name: figures[name] for name in _SAME_NAME},
            )
        except (KeyError, TypeError) as error:
            raise RuntimeFailedError(f"kvtier bench shared-prefix wrote no figures: {error!r}") from error

    @property
    def hit_rate(self) -> float:
        """Share of prompt tokens found anywhere."""
        return self.device_hit_rate + self.tier_hit_rate


_SAME_NAME: Final = ("seconds", "ttft_mean_s", "ttft_p90_s", "e2e_mean_s", "e2e_p90_s", "tokens_per_s")


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """The second act.

    Attributes:
        load: What was asked, of each way.
        ways: What came of it.
        picks: Requests that the picker sent to each engine, by its own metrics; /tokenize is among them.
        start_s: Seconds until the engines were ready.
        measure_s: Seconds for everything that was asked of them.
    """

    load: RoutingLoad
    ways: Mapping[Way, WayFigures]
    picks: Mapping[str, int]
    start_s: float
    measure_s: float

    @property
    def speedup(self) -> float:
        """Mean time to first token in turns over that with the picker, both with the tier."""
        return self.ways[Way.TURNS].ttft_mean_s / self.ways[Way.PICKER].ttft_mean_s

    @property
    def over_off(self) -> float:
        """Mean time to first token with the tier off over that with tier and picker."""
        return self.ways[Way.OFF].ttft_mean_s / self.ways[Way.PICKER].ttft_mean_s

    def verify(self) -> None:
        """Make sure that the last way's requests were the picker's choice, by its own count.

        Raises:
            RuntimeFailedError: They were not, so the figures would not mean what they say.
        """
        picked = sum(self.picks.values())
        if picked < self.load.requests:
            raise RuntimeFailedError(
                f"the demo does not show what it should: of {self.load.requests} requests the picker chose "
                f"the engine of {picked}"
            )

    def to_json(self) -> dict[str, Any]:
        """The figures and every sample."""
        return {
            "load": self.load.to_json(),
            "ways": {str(way): asdict(figures) for way, figures in self.ways.items()},
            "picks": dict(self.picks),
            "turns_over_picker": self.speedup,
            "off_over_picker": self.over_off,
            "start_s": self.start_s,
            "measure_s": self.measure_s,
        }


_ROWS: Final[Sequence[tuple[str, Callable[[WayFigures], str]]]] = (
    ("mean TTFT", lambda way: seconds(way.ttft_mean_s)),
    ("P90 TTFT", lambda way: seconds(way.ttft_p90_s)),
    ("mean E2E latency", lambda way: seconds(way.e2e_mean_s)),
    ("P90 E2E latency", lambda way: seconds(way.e2e_p90_s)),
    ("throughput, all tokens", lambda way: f"{way.tokens_per_s:,.0f} tokens/s"),
    ("found on the device", lambda way: f"{way.device_hit_rate:.0%}"),
    ("found in the CPU tier", lambda way: f"{way.tier_hit_rate:.0%}"),
    ("computed", lambda way: f"{1 - way.hit_rate:.0%}"),
    ("share of each engine", lambda way: " ".join(f"{share:.0%}" for share in way.engine_share)),
)


def rows(result: RoutingResult) -> list[tuple[str, tuple[str, ...]]]:
    """For a reader: each figure's name and its value for each way, in the order of the ways."""
    return [(label, tuple(cell(result.ways[way]) for way in Way)) for label, cell in _ROWS]


def title(load: RoutingLoad) -> str:
    """What was asked, in one line."""
    return (
        f"two engines behind one URL: {load.groups} system prompts of {load.system_tokens:,} tokens, "
        f"{load.prompts_per_group} questions about each, {load.concurrency} under way"
    )


def in_one_line(result: RoutingResult) -> str:
    """The mean times to first token."""
    means = (f"{seconds(figures.ttft_mean_s)} with {way}" for way, figures in result.ways.items())
    return f"mean time to first token {'; '.join(means)}"
