"""A Secret's entries as keys: what is one, and what is said of the others."""

from pathlib import Path

from kvtier_scorer.picker.api_keys import envoy_filter, read_keys

KEY = "sk-0123456789abcdef"


def test_what_is_no_key_is_left_out_and_named_but_not_shown(tmp_path: Path) -> None:
    entries = {"alice": f"{KEY}\n", "bob": KEY, "short": "secret", "spaced": f"{KEY} {KEY}", "odd": f"{KEY}é"}
    for name, text in entries.items():
        (tmp_path / name).write_text(text)
    keys = read_keys(tmp_path)
    assert keys.by_client == {"alice": KEY}
    assert [fault.split()[0] for fault in keys.faults] == ["bob", "odd", "short", "spaced"]
    assert KEY not in repr(keys)
    [resource] = envoy_filter(keys, passes_on=True)["resources"]
    assert resource["typed_config"]["forwarding"]["hide_credentials"] is False
