"""What each piece of a card's run has its engine start with; no engine is started."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.bench.card import piece as pieces
from tests.bench.card.budget import Piece
from tests.bench.card.kinds import KINDS
from tests.bench.card.piece import measure, pieces_of
from tests.bench.card.settings import CUDA, Settings, default_sides, server_step_tokens

from kvtier_connector.bench.comparison import Comparison
from kvtier_connector.bench.life import Asked
from kvtier_connector.config import GIB

SETTINGS = Settings.on(CUDA, "qwen3-8b", default_sides(CUDA), 4, card_bytes=140 * GIB)
ENGINES = tuple(piece for piece in pieces_of(SETTINGS) if piece.kind != "copies")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What engines are started with, and asked."""
    found: list[dict[str, Any]] = []

    @contextmanager
    def life(self: Comparison, side: str, settings: dict[str, Any], **more: Any) -> Iterator[None]:  # noqa: ANN401
        found.append({"comparison": self, "side": side, "settings": settings, **more})
        yield

    def live(_engine: None, asked: Asked, *, tier: bool, say: object) -> dict[str, Any]:
        found[-1] |= {"asked": asked, "tier": tier, "say": say}
        return {}

    monkeypatch.setattr(Comparison, "life", life)
    monkeypatch.setattr(pieces, "live", live)
    return found


@pytest.mark.parametrize("piece", ENGINES, ids=lambda piece: piece.name)
def test_engines_are_compiled_draw_their_weights_and_fit_their_prompts(
    piece: Piece, begun: list[dict[str, Any]], tmp_path: Path
) -> None:
    measure(piece, SETTINGS, tmp_path, print)
    (engine,) = begun
    settings, asked = engine["settings"], engine["asked"]
    assert (Path(settings["model"]) / "config.json").exists()
    assert "enforce_eager" not in settings
    assert "--enforce-eager" not in engine["comparison"].serve_options.arguments
    assert settings["load_format"] == "dummy"
    assert settings["disable_log_stats"] is False
    assert asked.prompt_tokens < settings["max_model_len"]
    assert engine["log"] == tmp_path / f"{piece.name}.log"
    assert engine["tier"] is (piece.what != "none")


def test_lives_have_what_the_planner_gives_and_a_server_s_steps(
    begun: list[dict[str, Any]], tmp_path: Path
) -> None:
    measure(Piece("life", "kvtier", 2, 1), SETTINGS, tmp_path, print)
    (engine,) = begun
    assert engine["comparison"].tier_bytes(1) == 24 * GIB
    assert engine["settings"]["max_num_batched_tokens"] == 8_192
    assert 11 * GIB < engine["settings"]["kv_cache_memory_bytes"] < 13 * GIB
    assert (engine["asked"].turn, engine["asked"].profile) == (1, None)
    assert engine["asked"].prompt_tokens == 15_376, "of which tier and device have the same"


def test_every_side_and_kind_is_a_piece_and_the_first_three_live_twice_the_second_time_backwards() -> None:
    lives = [(piece.what, piece.turn) for piece in ENGINES if piece.kind == "life"]
    assert lives[:7] == [(side, 1) for side in default_sides(CUDA)]
    assert lives[7:] == [("none", 2), ("vllm", 2), ("kvtier", 2)]
    assert [piece.what for piece in ENGINES if piece.kind == "kind"] == [*KINDS]


@pytest.mark.parametrize(("gib", "tokens"), [(24, 2_048), (80, 8_192), (141, 8_192), (180, 16_384)])
def test_a_server_s_steps_follow_the_card(gib: int, tokens: int) -> None:
    assert server_step_tokens(gib * GIB) == tokens
