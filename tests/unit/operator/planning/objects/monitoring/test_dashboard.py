from itertools import combinations

from tests.cases.monitoring import monitoring, shown

DISK = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}


def test_grafana_finds_it_under_a_name_of_its_own() -> None:
    config_map = monitoring()["ConfigMap", "case-dashboard"]
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert list(config_map["data"]) == ["kvcachetier-default-case.json"]


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in shown(tiers=DISK)["panels"]]
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above
    assert len({panel["id"] for panel in shown(tiers=DISK)["panels"]}) == len(places)


def test_targets_have_a_letter_each_and_a_legend() -> None:
    for panel in shown(tiers=DISK)["panels"]:
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == list("ABCDE")[: len(letters)]
        assert all(target["legendFormat"] for target in panel["targets"])
    [first_token] = [panel for panel in shown()["panels"] if panel["title"] == "Time to first token"]
    assert [target["legendFormat"] for target in first_token["targets"]] == ["p50", "p95"]


def test_panels_follow_backend_and_picker() -> None:
    titles = {panel["title"] for panel in shown()["panels"]}
    fewer = {panel["title"] for panel in shown(backend="LMCache", router={"flavor": "builtin"})["panels"]}
    assert titles - fewer == {
        "Bytes loaded and stored a second",
        "Does the tier pay: tokens a second of loading, of computing",
        "CPU tier: bytes used and there",
        "CPU tier: chunks a second that left it",
        "Picker: share of a prompt it knows of",
    }


def test_a_disk_tier_is_shown_where_the_backend_tells_of_it() -> None:
    def titles(**spec: object) -> set[str]:
        return {panel["title"] for panel in shown(**spec)["panels"]}

    assert titles(tiers=DISK) - titles() == {
        "Disk tier: bytes used and there",
        "Disk tier: bytes read and written a second",
        "Disk tier: chunks a second",
        "Disk tier: engines that serve from memory alone",
    }
    assert titles(backend="Native", tiers=DISK) == titles(backend="Native")
