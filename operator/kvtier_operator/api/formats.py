"""Formats of single fields: names of objects, images and hosts, base URLs, blocks of addresses, times and parts."""

import re
from ipaddress import ip_network
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from kvtier_operator.api.base import VALIDATIONS, cel_validation

LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
"""A namespace's, and each part of a host name; 63 characters at most."""
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
"""Most objects'; 253 characters at most."""
LABEL_PATTERN: Final = f"^{LABEL}$"
SUBDOMAIN_PATTERN: Final = f"^{SUBDOMAIN}$"
DnsLabel: TypeAlias = Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL_PATTERN)]
"""A field that names a namespace, or what is named alike."""
DnsSubdomain: TypeAlias = Annotated[str, Field(min_length=1, max_length=253, pattern=SUBDOMAIN_PATTERN)]
"""A field that names an object."""
_REGISTRY: Final = (
    r"([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])"
)
_REPOSITORY_PART: Final = "[a-z0-9]+(([.]|__?|-+)[a-z0-9]+)*"
_TAG: Final = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = "[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}"
TAGGED: Final = f"({_REGISTRY}(:[0-9]+)?/)?{_REPOSITORY_PART}(/{_REPOSITORY_PART})*(:{_TAG})?"
"""What stands before a digest."""
IMAGE_NAME_PATTERN: Final = f"^{TAGGED}(@{_DIGEST})?$"
"""github.com/distribution/reference, regexp.go; a kubelet says InvalidImageName of any other."""
_MOST_CHARACTERS: Final = 43
"""Of the longest: an IPv6 address written out, and the bits."""
_BLOCK: Final = re.compile(r"[0-9a-fA-F:.]+/(0|[1-9][0-9]{0,2})")
"""Python's own reader also takes masks, zones and bits with a 0 before them."""
# Expressions that Python and CEL read alike, of which CEL bounds the cost; its `url` and `ip` have none here.
_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_HOST_NAME: Final = "([A-Za-z0-9_-]+[.])*[A-Za-z_][A-Za-z0-9_-]*[.]?"
"""Its last part begins with no digit, so that nobody takes it for an address: `2852039166`, `0xa9.254.43518`."""
_HOST: Final = rf"(\[[0-9A-Fa-f:]+\]|{_OCTET}([.]{_OCTET}){{3}}|{_HOST_NAME})"
HTTP_URL_PATTERN: Final = rf"^https?://{_HOST}(:[0-9]{{1,5}})?(/[A-Za-z0-9._~%!$&'()*+,;=:@/-]*)?$"
"""Of the characters that a URL has (RFC 3986); without a query, and without a password, which everybody who
reads the resource would see. An address has four numbers of base ten, or groups of 16 bits."""
_PORT: Final = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
OTLP_URL_PATTERN: Final = rf"^http://{_HOST}:{_PORT}$"
"""Where OTLP over gRPC is taken."""
_NAMES: Final = (
    r"([^/:]+[.])?localhost|metadata([.]google[.]internal|[.]goog)?|instance-data([.]ec2[.]internal)?"
)
_IPV4: Final = (
    r"(0|127|22[4-9]|2[345][0-9])([.][0-9]+){3}|169[.]254([.][0-9]+){2}"
    r"|100[.]100[.]100[.]200|168[.]63[.]129[.]16|192[.]0[.]0[.]192"
)
"""Of the machine itself, of many, of its link; metadata and agents of Alibaba, Azure and Oracle."""
_IPV6: Final = (
    r"\[(:|[0-9a-f]{1,3}:|[014-9a-e][0-9a-f]{3}:|f[0-9abef][0-9a-f]{2}:|2002:|2001:0{0,4}:"
    r"|fd00:0?ec2:[0:]*:0?254\])"
)
"""All but 2000::/3 and fc00::/7; of those what ends at an IPv4 address (6to4, Teredo), and AWS's metadata."""
FORBIDDEN_URL: Final = rf"(?i)^https?://(({_NAMES})[.]?(:|/|$)|({_IPV4})(:|/|$)|{_IPV6})"
"""Of such URLs those of the machine that asks, of its link and of its cloud's metadata."""


DURATION_PATTERN: Final = "^(0|[1-9][0-9]{0,4})[smh]$"
"""One number with one unit: Go's own durations have several, and fractions."""
PERCENTAGE_PATTERN: Final = "^([0-9]|[1-9][0-9]|100)%$"
RETAINED_PATTERN: Final = "^([0-9]|[1-8][0-9]|90)%$"
"""A tenth of a tier at least is for whatever comes."""
Duration = Annotated[str, Field(max_length=6, pattern=DURATION_PATTERN)]
"""A field that is a time, such as `1h`."""
Percentage = Annotated[str, Field(max_length=4, pattern=PERCENTAGE_PATTERN)]
"""A field that is a part of something, such as `30%`."""
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600}


def seconds_of(duration: str) -> int:
    """Seconds of a `Duration`."""
    return int(duration[:-1]) * _UNIT_S[duration[-1]]


def share_of(percentage: str) -> float:
    """A `Percentage` as a number from 0 to 1."""
    return int(percentage.removesuffix("%")) / 100


LABEL_VALUE_PATTERN: Final = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX: Final = re.compile(SUBDOMAIN)
_MOST_SHOWN: Final = 80


def _check_label_names(labels: dict[str, str]) -> dict[str, str]:
    """Refuse what is no label's name: CEL's budget has no room for it, for keys have no bound."""
    for name in labels:
        prefix, slash, own = name.rpartition("/")
        if not _LABEL_NAME.fullmatch(own) or (slash and not _LABEL_PREFIX.fullmatch(prefix)):
            context = {"name": repr(name[:_MOST_SHOWN])}
            raise PydanticCustomError("label_name", "{name} is not the name of a label", context)
    return labels


LabelValue = Annotated[str, Field(max_length=63, pattern=LABEL_VALUE_PATTERN)]
Labels = Annotated[dict[str, LabelValue], AfterValidator(_check_label_names)]
"""Labels of an object."""


def _check_block(text: str) -> str:
    try:
        network = ip_network(text, strict=False) if _BLOCK.fullmatch(text) else None
    except ValueError:
        network = None
    # an IPv4 address in IPv6's clothes matches nothing that comes over IPv4
    if network is None or getattr(network.network_address, "ipv4_mapped", None):
        raise PydanticCustomError("ip_block", "Input should be an address block")
    return text


# isCIDR: Kubernetes 1.30 (k8s.io/apiserver, pkg/cel/environment); a CRD may use it one minor version later.
IPBlock = Annotated[
    str,
    Field(
        max_length=_MOST_CHARACTERS,
        json_schema_extra={
            VALIDATIONS: [
                cel_validation(
                    "isCIDR(self)", "must be an address block such as 10.129.0.0/23 or 2001:db8::/64"
                )
            ]
        },
    ),
    AfterValidator(_check_block),
]
"""An address and how many of its bits count, such as `10.129.0.0/23`."""
