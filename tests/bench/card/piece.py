"""One piece of a run, in a process of its own: `python -m tests.bench.card.piece OUT NAME FILE`.

So a piece that hangs or dies takes nothing along, and no CUDA context stays on the card beside an engine.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.bench.card.budget import Piece
from tests.bench.card.kinds import KINDS
from tests.bench.card.settings import CUDA, Settings, planned_arguments

from kvtier_connector.bench import life
from kvtier_connector.bench.choices import KVTIER, NONE, VLLM
from kvtier_connector.bench.comparison import Comparison
from kvtier_connector.bench.life import Asked, live
from kvtier_connector.bench.vllm_arguments import ServeOptions
from kvtier_connector.config import GIB
from kvtier_connector.errors import ConnectorError

COPIES, LIFE, KIND = "copies", "life", "kind"
_KIND_TOKENS: Final = 12_000  # of a prompt, of kinds of models
_KIND_DEVICE_BYTES: Final = 4 * GIB
_KIND_TIER_BYTES: Final = 8 * GIB
_COMPARED: Final = 2  # prompts whose answers all sides give
_PROFILED: Final = (KVTIER, VLLM)
_LIFE_S: Final = 90.0
_CPU_LIFE_S: Final = 240.0  # a core that others use too
_IMPORTANT: Final = 3  # sides that get a second life


def pieces_of(settings: Settings) -> tuple[Piece, ...]:
    """Return the pieces of a run, the most important first.

    Every other turn goes backwards, so that what drifts, such as a card's clock, is the same for all.
    """
    if settings.device != CUDA:
        return tuple(Piece(LIFE, side, 1, _CPU_LIFE_S) for side in settings.sides)
    first = [Piece(LIFE, side, 1, _LIFE_S) for side in settings.sides]
    again = [Piece(LIFE, side, 2, _LIFE_S) for side in reversed(settings.sides[:_IMPORTANT])]
    kinds = [Piece(KIND, name, 0, 50) for name in KINDS]
    return Piece(COPIES, "", 0, 40), *first, *kinds, *again


def measure(piece: Piece, settings: Settings, out: Path, say: Callable[[str], None]) -> Any:  # noqa: ANN401 - JSON
    """Measure it; raises ConnectorError: an engine died, or there is no GPU."""
    if piece.kind == COPIES:
        from kvtier_connector.bench.gpu import bench_gpu  # noqa: PLC0415 - needs CUDA

        return bench_gpu()
    if piece.kind == KIND:
        return _kind(piece, out, say)
    comparison = settings.comparison(out / "scratch")
    asked = Asked(
        prompt_tokens=comparison.comparable_tokens(settings.prompt_tokens),
        prompts=settings.prompts,
        compared=_COMPARED,
        workloads=settings.workloads,
        rounds=settings.rounds,
        turn=piece.turn - 1,
        profile=out / f"{piece.name}.samples" if piece.what in _PROFILED and piece.turn == 1 else None,
    )
    engine_settings = comparison.settings(
        device_tokens=settings.device_tokens, longest_tokens=settings.longest_tokens()
    )
    if settings.step_tokens:
        engine_settings["max_num_batched_tokens"] = settings.step_tokens
    with comparison.life(
        piece.what,
        engine_settings | {"disable_log_stats": False},
        tier_tokens=settings.tier_tokens,
        log=out / f"{piece.name}.log",
        module=life.__name__,
    ) as engine:
        return live(engine, asked, tier=piece.what != NONE, say=say)


def _kind(piece: Piece, out: Path, say: Callable[[str], None]) -> dict[str, Any]:
    kind = KINDS[piece.what]
    model = out / "scratch" / piece.name
    model.mkdir(parents=True, exist_ok=True)
    (model / "config.json").write_text(json.dumps(dict(kind.config), indent=2))
    arguments = planned_arguments(
        f"kvtier/{piece.what}", kind.config, tier_bytes=_KIND_TIER_BYTES, engine=kind.engine
    )
    comparison = Comparison(
        model=model, serve_options=ServeOptions.read(arguments), device=CUDA, disks=out / "scratch"
    )
    settings = comparison.settings(device_tokens=1, longest_tokens=_KIND_TOKENS + 64) | {
        "kv_cache_memory_bytes": _KIND_DEVICE_BYTES,
        "disable_log_stats": False,
    }
    asked = Asked(prompt_tokens=_KIND_TOKENS, prompts=2, compared=_COMPARED, workloads={}, rounds={})
    log = out / f"{piece.name}.log"
    with comparison.life(KVTIER, settings, tier_tokens=1, log=log, module=life.__name__) as engine:
        return live(engine, asked, tier=True, say=say)


def main(out: Path, name: str, file: Path) -> None:
    """Measure the piece of this name, and write what it comes to."""
    settings = Settings.of(json.loads((out / "run.json").read_text())["settings"])
    (piece,) = (each for each in pieces_of(settings) if each.name == name)
    (out / "scratch").mkdir(exist_ok=True)

    def say(line: str) -> None:
        print(f"  {name}: {line}", flush=True)  # noqa: T201 - a program

    try:
        figures = measure(piece, settings, out, say)
    except ConnectorError as error:
        sys.exit(str(error))
    file.write_text(json.dumps(figures))


if __name__ == "__main__":  # engines are spawned, and import this
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
