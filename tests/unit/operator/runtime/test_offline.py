"""What `kvtier bench offline` says to programs."""

from kvtier_operator.runtime.offline import OfflineTimes


def test_figures_names_are_what_people_read() -> None:
    found = OfflineTimes(
        first_run_s=3.0, second_run_s=1.5, prompt_tokens=100, cached_tokens=96, outputs_equal=True
    ).to_json()
    assert " ".join(found) == "first_run_s second_run_s prompt_tokens cached_tokens outputs_equal speedup"
    assert found["speedup"] == 2.0
