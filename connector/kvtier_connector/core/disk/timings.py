"""How long the disk tier waits for what."""

from dataclasses import dataclass

from kvtier_common.backoff import doubled_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Delays, intervals and patience, all in seconds. Tests pass shorter ones."""

    look_s: float = 0.25  # how often a disk that has something to do is looked after; nothing waits for it
    check_s: float = 1.0  # how often the folder is looked for
    verdict_s: float = 0.02  # how often it is looked for what workers have found
    # how long a worker may take to come to a block, whose step has to compute the first layers before. In a
    # step that takes longer for them, the disk's thread is not noticed.
    worker_patience_s: float = 0.05
    probe_patience_s: float = 1.0  # how long a look at the disk's bandwidth may take
    first_retry_s: float = 1.0  # how long a disk that was given up is left alone at first
    longest_retry_s: float = 60.0  # and at most
    # how often what was learnt is kept, and a disk that nothing is read from is looked at
    relearn_s: float = 30.0
    begin_s: float = 0.005  # how long a step leaves the interpreter to the disk's thread, for that to begin
    nap_s: float = 0.0002  # how long at a time
    closing_s: float = 5.0  # how long the end may take

    def retry_s(self, attempts: int) -> float:
        """Return how long a disk is left alone that was tried so many times and has not worked since."""
        return doubled_s(self.first_retry_s, self.longest_retry_s, attempts)


DEFAULT_TIMINGS = Timings()
