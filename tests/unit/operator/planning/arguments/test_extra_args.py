import pytest

from kvtier_operator.planning.arguments.extra_args import is_on, value_of

HYBRID = "--disable-hybrid-kv-cache-manager"


@pytest.mark.parametrize(
    ("given", "on"),
    [
        ([], False),
        ([HYBRID], True),
        (["--disable_hybrid_kv_cache_manager"], True),
        (["--disable-hybrid"], True),
        ([HYBRID, "--no-disable-hybrid-kv-cache-manager"], False),
        (["--no-disable-hybrid", HYBRID], True),
    ],
    ids=str,
)
def test_a_switch_counts_as_vllm_counts_it(given: list[str], *, on: bool) -> None:
    assert is_on(given, HYBRID) is on


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (["--dty", "float32"], "float32"),
        (["--dtype=half", "--dt=float32"], "float32"),
        (["--dtype"], None),
        (["--dtypes", "float32"], None),
        (["dtype", "float32"], None),
    ],
    ids=str,
)
def test_a_value_is_the_last_one_under_any_name(given: list[str], value: str | None) -> None:
    assert value_of(given, "--dtype") == value
