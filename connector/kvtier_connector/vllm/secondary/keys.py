"""Keys of one length, as the disk's index has them: a secondary tier is not told which hash vLLM uses."""

from collections.abc import Iterable

from vllm.v1.kv_offload.base import OffloadKey
from vllm.v1.kv_offload.tiering.base import TransferJob

from kvtier_connector.config import KEY_BYTES


class DiskKeys:
    """vLLM's keys, filled up to the disk's length, and back: those of one engine have one length."""

    def __init__(self) -> None:
        self._key_bytes = KEY_BYTES

    def on_disk(self, key: OffloadKey) -> bytes:
        """Return a key as the disk has it.

        Raises:
            ValueError: It is longer than any that is known.
        """
        if len(key) > KEY_BYTES:
            raise ValueError(f"a key of {len(key)} bytes: the disk tier does not know this vLLM's hash")
        return bytes(key).ljust(KEY_BYTES, b"\0")

    def slots(self, job: TransferJob) -> dict[bytes, int]:
        """Return a job's chunks, as the disk has them, and their slots: from a prompt's root to its tail."""
        place = job.req_context.get_offload_key_position
        pairs = sorted(
            zip(job.keys, job.chunk_ids.tolist(), strict=True), key=lambda pair: place(pair[0]) or 0
        )
        self._key_bytes = max((len(key) for key in job.keys), default=self._key_bytes)
        return {bytes(key).ljust(KEY_BYTES, b"\0"): slot for key, slot in pairs}

    def of_vllm(self, keys: Iterable[bytes]) -> list[OffloadKey]:
        """Return keys as vLLM knows them."""
        return [OffloadKey(key[: self._key_bytes]) for key in keys]
