"""Base URLs that somebody else asks: written in one way alone, and where they must not lead.

Expressions that Python and CEL read alike, of which CEL bounds the cost; its `url` and `ip` have none here.
"""

from typing import Final

_OCTET: Final = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_NAME: Final = "([A-Za-z0-9_-]+[.])*[A-Za-z_][A-Za-z0-9_-]*[.]?"
"""Its last part begins with no digit, so that nobody takes it for an address: `2852039166`, `0xa9.254.43518`."""
_HOST: Final = rf"(\[[0-9A-Fa-f:]+\]|{_OCTET}([.]{_OCTET}){{3}}|{_NAME})"
HTTP_URL_PATTERN: Final = rf"^https?://{_HOST}(:[0-9]{{1,5}})?(/[A-Za-z0-9._~%!$&'()*+,;=:@/-]*)?$"
"""Of the characters that a URL has (RFC 3986); without a query, and without a password, which everybody who
reads the resource would see. An address has four numbers of base ten, or groups of 16 bits."""

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
