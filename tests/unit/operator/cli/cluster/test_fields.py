import json

from tests.cases.seen import view_of, well

from kvtier_operator.cli.cluster.next_step import next_step
from kvtier_operator.cli.cluster.screen import view_fields


def test_names_and_figures_for_programs() -> None:
    view = view_of(well())
    found = json.loads(json.dumps(view_fields(view, next_step(view))))
    assert [*found] == [
        *(
            "namespace",
            "name",
            "model",
            "backend",
            "replicas",
            "readyReplicas",
            "url",
            "conditions",
            "pods",
            "engines",
        ),
        *("tiers", "shares", "picker", "next", "notRead"),
    ]
    assert found["tiers"]["cpu"] == {
        "bytes": 214748364800,
        "tokens": 819200,
        "filled": 0.5,
        "hitTokens": 400000,
        "hitRate": 0.2,
        "savedSeconds": 72.0,
    }
    assert found["picker"]["believedShare"] == 0.54
    assert found["pods"][0]["ageSeconds"] == 10800
    assert found["next"] == {"text": "nothing: it serves", "command": ""}
