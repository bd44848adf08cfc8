"""What a simulated run says to programs."""

import numpy as np

from kvtier_common.tier import Tier
from kvtier_scorer.simulate.runs.figures import Figures


def test_its_names_are_what_people_read() -> None:
    found = Figures(
        hit_rate=0.5,
        tier_hit_rate=dict.fromkeys(Tier, 0.25),
        ttft_mean_s=1.0,
        ttft_p90_s=2.0,
        e2e_mean_s=3.0,
        tokens_per_s=4.0,
        load_variation=0.0,
        requests=1,
        ttft_s=np.array([1.0]),
    ).to_json()
    assert " ".join(found) == (
        "hit_rate tier_hit_rate ttft_mean_s ttft_p90_s e2e_mean_s tokens_per_s load_variation requests"
    )
    assert " ".join(found["tier_hit_rate"]) == "gpu cpu disk"
