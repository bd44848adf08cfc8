"""Which URLs spec.autoscaling.prometheusUrl takes."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases.kvcachetier import document

from kvtier_operator.api.parse import parse_resource
from kvtier_operator.errors import InvalidInputError


def parse(url: str) -> None:
    parse_resource(document({"spec.autoscaling": {"maxReplicas": 2, "prometheusUrl": url}}), "cr.yaml")


@pytest.mark.parametrize(
    "url",
    [
        "http://prometheus:9090",
        "https://prometheus-operated.monitoring.svc.cluster.local:9090/",
        "http://[fd00::1]:9090",
        "http://prometheus.monitoring.svc.cluster.local.",
        "https://mimir.example/prometheus/tenants/a%20b",
    ],
)
def test_urls(url: str) -> None:
    parse(url)


@pytest.mark.parametrize(
    "url",
    [
        "prometheus:9090",
        "file:///etc/passwd",
        "http://",
        "http://user:password@prometheus:9090",
        "http://prometheus:9090?x=1",
        "http://prometheus:9090/#x",
        "http://prometheus:9090/\x1b[2J",
        "http://prometheus:9090/\n",
        "http://prometheus\u202e:9090",
        "http://prometheus\\@elsewhere",
        "http://169%2e254.169.254",
        "http://[fe80::1%25eth0]",
        "http://\uff11\uff16\uff19.254.169.254",
        "http://::1:80",
        "http://[::1",
        "http://a:80:80",
    ],
)
def test_what_is_none_is_refused_with_its_field(url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"spec\.autoscaling\.prometheusUrl: .* is not a base URL"):
        parse(url)


FORBIDDEN = st.sampled_from(("169.254.0.0", "127.0.0.0")).flatmap(
    lambda network: st.integers(0, (1 << 16) - 1).map(
        lambda low: IPv4Address(int(IPv4Address(network)) + low)
    )
)
NAMES = st.sampled_from(("localhost", "a.localhost", "metadata.google.internal", "metadata.goog", "metadata"))


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """An IPv4 address as inet_aton takes it: one to four numbers, each in a base of its own."""
    rest, count = int(draw(FORBIDDEN)), draw(st.integers(1, 4))
    parts = [(rest >> 8 * (3 - index)) & 0xFF for index in range(count - 1)]
    parts.append(rest & ((1 << 8 * (5 - count)) - 1))
    forms = (str, hex, lambda each: f"0{each:o}", lambda each: f"0X{each:08X}", lambda each: f"000{each:o}")
    return ".".join(draw(st.sampled_from(forms))(part) for part in parts)


@st.composite
def inside(draw: st.DrawFn) -> str:
    """An IPv4 address that stands in one of IPv6, written out, shortened, or with dots."""
    low = int(draw(FORBIDDEN))
    start = draw(st.sampled_from(("::ffff:0:0", "::", "64:ff9b::", "64:ff9b:1::")))
    address = IPv6Address(int(IPv6Address(start)) + low)
    if draw(st.booleans()):
        address = IPv6Address((0x2002 << 112) + (low << 80))
    dotted = f"{start.removesuffix('0:0')}{IPv4Address(low)}"
    return f"[{draw(st.sampled_from((str(address), address.exploded, dotted)))}]"


@st.composite
def spellings(draw: st.DrawFn) -> str:
    host = draw(st.one_of(FORBIDDEN.map(str), NAMES, numbers(), inside()))
    cased = "".join(draw(st.sampled_from((each.lower(), each.upper()))) for each in host)
    end = "" if host.startswith("[") else draw(st.sampled_from(("", ".")))
    scheme, port = (
        draw(st.sampled_from(("http", "https"))),
        draw(st.sampled_from(("", ":80", ":443", ":9090"))),
    )
    return f"{scheme}://{cased}{end}{port}{draw(st.sampled_from(('', '/', '/a%2e%2e/x')))}"


@given(spellings())
def test_a_forbidden_place_is_refused_however_it_is_written(url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^cr.yaml: spec\.autoscaling\.prometheusUrl: "):
        parse(url)
