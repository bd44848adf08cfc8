"""The forms that texts must have, in words for whoever wrote another."""

from collections.abc import Mapping
from typing import Final

from kvtier_operator.api.formats.base_url import HTTP_URL_PATTERN
from kvtier_operator.api.formats.dns_names import LABEL_PATTERN, SUBDOMAIN_PATTERN
from kvtier_operator.api.formats.image_name import IMAGE_NAME_PATTERN
from kvtier_operator.api.spec.env import VARIABLE_PATTERN
from kvtier_operator.api.spec.gateway import HOST_PATTERN, URL_PATH_PATTERN
from kvtier_operator.api.spec.model import ADAPTER_PATTERN, KEY_PATTERN, SERVED_NAME_PATTERN
from kvtier_operator.api.spec.model_source import REVISION_PATTERN, SOURCE_PATTERN
from kvtier_operator.api.spec.router import VERSION_PATTERN
from kvtier_operator.api.spec.scheduling import REQUEST_PATTERN
from kvtier_operator.api.spec.volume import PATH_PATTERN

_ENDS: Final = "with a letter or a digit at both ends"
FORMS: Final[Mapping[str, str]] = {
    LABEL_PATTERN: f"is no name here; write a-z, 0-9 and -, {_ENDS}",
    SUBDOMAIN_PATTERN: f"is no name here; write a-z, 0-9, - and ., {_ENDS} and beside each dot",
    HOST_PATTERN: "is no host name; write it in lower case, with no scheme, port or path, such as "
    "llm.example.com or *.example.com",
    VERSION_PATTERN: "is no version; write numbers with dots, such as 0.10 or 1.4.0",
    IMAGE_NAME_PATTERN: "is no image; write HOST/NAME:TAG or HOST/NAME@sha256:DIGEST, with no scheme and no "
    "spaces and the name in lower case",
    SOURCE_PATTERN: "is no source; write SCHEME://PLACE, with the scheme in lower case and no spaces, such as "
    "s3://BUCKET/FOLDER",
    REVISION_PATTERN: "is no revision; write a branch, tag or commit in letters, digits and . _ + @ = -, with / between "
    "parts that begin with a letter, a digit or _",
    HTTP_URL_PATTERN: "is no base URL; write http://HOST:PORT or https://HOST:PORT/PATH, with a name, four decimal numbers or a plain IPv6 "
    "address, the scheme in lower case, no password and no query",
    URL_PATH_PATTERN: "is no path to pass; write /SEGMENT/SEGMENT in letters, digits and - . _ ~, with no "
    "slash at its end, no . or .. as a segment, no query and no %, or / for all paths",
    PATH_PATTERN: "is no absolute path; begin it with /",
    VARIABLE_PATTERN: "is no name of a variable; write letters, digits, _, - and ., no digit first, and its "
    "value into value",
    SERVED_NAME_PATTERN: "is no name of a model; write letters, digits and . _ - : / @ +, a letter or digit first",
    ADAPTER_PATTERN: "is no adapter; write ORG/ADAPTER of the Hub, or the folder's whole path in the container",
    KEY_PATTERN: "is no key of a Secret; write letters, digits, -, _ and .",
    REQUEST_PATTERN: "is no request of a claim; write REQUEST or REQUEST/SUBREQUEST in a-z, 0-9 and -",
}
"""By the regular expression that a text must match; pydantic and the API server quote that alone."""
