"""The fixed state that a linear-attention, Mamba or convolution layer keeps of one sequence."""

from dataclasses import dataclass
from enum import StrEnum

from kvtier_operator.planning.units import ceil_div


class Recurrence(StrEnum):
    """What decides the dtype of a recurrent state, before the model's own and the convolution's."""

    SSM = "--mamba-ssm-cache-dtype"
    KDA = "the same, of delta attention, which vLLM keeps in no float16"
    OWN = "no argument of its own"


@dataclass(frozen=True, slots=True)
class State:
    """One layer's state: the inputs of a short convolution, and a recurrent state.

    The shapes are those of vLLM's MambaStateShapeCalculator (model_executor/layers/mamba/mamba_utils.py).

    Attributes:
        channels: Of the convolution, all ranks together, without those of `groups`.
        group_channels: Of each group.
        groups: Groups that heads share; as many as ranks where ranks do not divide them.
        tokens: Inputs that the convolution keeps, the kernel's size less one.
        draft_tokens: Whether it keeps one more for each speculative token.
        recurrent_elements: All ranks together.
        heads: Numbers of heads that the ranks must divide.
        recurrent_bytes: Bytes of one of them; 0 for those of the convolution's dtype.
        recurrence: What goes before that.
    """

    channels: int = 0
    group_channels: int = 0
    groups: int = 0
    tokens: int = 0
    draft_tokens: bool = True
    recurrent_elements: int = 0
    recurrent_bytes: int = 0
    heads: tuple[int, ...] = ()
    recurrence: Recurrence = Recurrence.SSM

    def rank_bytes(
        self, ranks: int, dtype_bytes: int, recurrent_bytes: int = 0, draft_tokens: int = 0
    ) -> int:
        """Bytes of one layer's state on one rank.

        Args:
            ranks: That share the layer.
            dtype_bytes: Bytes of one element of the convolution.
            recurrent_bytes: Bytes of one recurrent element where the engine is told; 0 otherwise.
            draft_tokens: Speculative tokens of one step.
        """
        groups = self.groups if not self.groups % ranks else ranks
        channels = ceil_div(self.channels + groups * self.group_channels, ranks)
        tokens = self.tokens + (draft_tokens if self.draft_tokens else 0)
        recurrent = ceil_div(self.recurrent_elements, ranks)
        configured_bytes = 0 if self.recurrence is Recurrence.OWN else recurrent_bytes
        return channels * tokens * dtype_bytes + recurrent * (
            configured_bytes or self.recurrent_bytes or dtype_bytes
        )
