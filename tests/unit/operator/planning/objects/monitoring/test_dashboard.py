from tests.cases.monitoring import monitoring, shown

DISK = {"disk": {"capacity": "1Ti", "volume": {"emptyDir": {}}}}


def test_grafana_finds_it_under_a_name_of_its_own() -> None:
    config_map = monitoring()["ConfigMap", "case-dashboard"]
    assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert list(config_map["data"]) == ["kvcachetier.default.case.json"]


def test_a_quantile_is_called_by_its_percentage() -> None:
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
