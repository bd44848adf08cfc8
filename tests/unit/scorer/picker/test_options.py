"""Where the command line says that pods come from."""

from dataclasses import replace

import pytest

from kvtier_scorer.config.model import PickerConfigError
from kvtier_scorer.picker.options import POOL_GROUP, PodsFlags, Pool, Selection, pods_of

NOTHING = PodsFlags(None, None, "ns", POOL_GROUP, None, None)


def test_a_list_a_pool_or_labels() -> None:
    assert pods_of(replace(NOTHING, endpoints="1.2.3.4:80, 1.2.3.5:80")) == ("1.2.3.4:80", "1.2.3.5:80")
    assert pods_of(replace(NOTHING, pool="p")) == Pool("p", "ns")
    chosen = replace(NOTHING, selector="app.kubernetes.io/name=vllm,env=prod", ports="8000,8001")
    labels = {"app.kubernetes.io/name": "vllm", "env": "prod"}
    assert pods_of(chosen) == Selection("ns", labels, [8000, 8001])


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (NOTHING, "give one of --endpoints, --pool-name and --endpoint-selector"),
        (replace(NOTHING, endpoints="1.2.3.4:80", pool="p"), "give one of --endpoints"),
        (replace(NOTHING, pool="p", selector="app=x"), "give one of --endpoints"),
        (replace(NOTHING, pool="p", group="example.com"), "--pool-group: 'example.com' is not known"),
        (replace(NOTHING, pool="p", ports="80"), "--endpoint-target-ports: these are of --endpoint-selector"),
        (replace(NOTHING, selector="", ports="80"), "--endpoint-selector: '' is not of the form"),
        (replace(NOTHING, selector="app", ports="80"), "--endpoint-selector: 'app' is not"),
        (replace(NOTHING, selector="app in (a,b)", ports="80"), "--endpoint-selector: 'app in (a,b)'"),
        (replace(NOTHING, selector="app=x"), "--endpoint-target-ports: '' is not"),
        (replace(NOTHING, selector="app=x", ports="0"), "--endpoint-target-ports: '0' is not"),
        (replace(NOTHING, selector="app=x", ports="80,"), "--endpoint-target-ports: '80,' is not"),
        (replace(NOTHING, selector="app=x", ports="65536"), "--endpoint-target-ports: '65536' is not"),
    ],
    ids=str,
)
def test_what_says_nothing_clear_is_refused(flags: PodsFlags, said: str) -> None:
    with pytest.raises(PickerConfigError) as refused:
        pods_of(flags)
    assert str(refused.value).startswith(said)
