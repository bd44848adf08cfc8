"""What the checks of the owner's policy have in common: how a refusal is said."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvtier_operator.planning.base.owner_policy import Limit, limit_text
from kvtier_operator.planning.verdict import CheckResult, Verdicts


@dataclass(frozen=True, slots=True)
class Denial:
    """One limit's words, after "the cluster's owner lets".

    Attributes:
        verdicts: The check's.
        reason: CamelCase.
        nothing: Where nothing is allowed, such as `no resource name an image`.
        these: Where some are: what the list has, such as `resources name images of`.
    """

    verdicts: Verdicts
    reason: str
    nothing: str
    these: str

    def of(self, limit: Limit, denied: Sequence[tuple[str, str]], instead: str) -> CheckResult:
        """Rejects all of them with one line.

        Args:
            limit: Not `allow`.
            denied: What is asked for and is not allowed, at least one: field and value.
            instead: What to do that is allowed whatever the limit.
        """
        (field, first), *others = denied
        if isinstance(limit, str) or not limit:
            also = f" ({', '.join(place for place, _ in others)} as well)" if others else ""
            message = f"{self.nothing}{also}: {instead}"
        else:
            also = "".join(f", nor is {value} at {place}" for place, value in others)
            message = (
                f"{self.these}: {limit_text(limit)}; {first} is none of them{also}: take one, or {instead}"
            )
        return self.verdicts.reject(self.reason, f"the cluster's owner lets {message}", field=field)
