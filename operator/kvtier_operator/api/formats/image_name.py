"""The name of an image, as runtimes read it."""

from typing import Final

_HOST: Final = (
    r"([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])"
)
_PART: Final = "[a-z0-9]+(([.]|__?|-+)[a-z0-9]+)*"
_TAG: Final = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = "[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}"
TAGGED: Final = f"({_HOST}(:[0-9]+)?/)?{_PART}(/{_PART})*(:{_TAG})?"
"""What stands before a digest."""
IMAGE_NAME_PATTERN: Final = f"^{TAGGED}(@{_DIGEST})?$"
"""github.com/distribution/reference, regexp.go; a kubelet says InvalidImageName of any other."""
