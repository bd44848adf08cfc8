"""What policies see of the pods' load: metrics as old as the last reading."""

import numpy as np


class Loads:
    """Waiting and running requests and cache utilization of each pod, as they were at the last reading.

    All pods are read at the same times, multiples of the interval.

    Args:
        pods: How many.
        interval_s: Between two readings.

    Attributes:
        queue_depth: `vllm:num_requests_waiting` (int64).
        running: `vllm:num_requests_running` (int64).
        kv_cache_utilization: `vllm:kv_cache_usage_perc` (float64): the part of the device's blocks that
            requests use; what is only cached does not count.
        read_at_s: When they were read.
    """

    def __init__(self, pods: int, interval_s: float) -> None:
        self.queue_depth = np.zeros(pods, np.int64)
        self.running = np.zeros(pods, np.int64)
        self.kv_cache_utilization = np.zeros(pods, np.float64)
        self.read_at_s = 0.0
        self._now = [(0, 0, 0.0)] * pods
        self._interval_s = interval_s
        self._read = [0] * pods

    def change(self, pod: int, now_s: float, *, queue_depth: int, running: int, utilization: float) -> None:
        """A pod's load from `now_s` on."""
        self._publish(pod, int(now_s / self._interval_s))
        self._now[pod] = (queue_depth, running, utilization)

    def read(self, now_s: float) -> None:
        """Bring what is seen up to the last reading before `now_s`."""
        reading = int(now_s / self._interval_s)
        self.read_at_s = reading * self._interval_s
        for pod in range(len(self._now)):
            self._publish(pod, reading)

    def _publish(self, pod: int, reading: int) -> None:
        if reading > self._read[pod]:
            self._read[pod] = reading
            self.queue_depth[pod], self.running[pod], self.kv_cache_utilization[pod] = self._now[pod]
