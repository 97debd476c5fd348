"""When a fleet grows and shrinks: what KEDA and the HorizontalPodAutoscaler that it drives make of a group's lag."""

import collections
import math


class Scaler:
    """Decides how many replicas there should be. KEDA wakes a fleet from zero once there is lag, and puts it to sleep
    when there has been none for `cooldown_s`. In between one replica is wanted for each `lag_threshold` messages, one
    at least and `replicas_max` at most; a smaller number counts once nothing else was wanted for `stabilization_s`."""

    def __init__(self, lag_threshold, replicas_max, stabilization_s, cooldown_s):
        self._lag_threshold = lag_threshold
        self._replicas_max = replicas_max
        self._stabilization_s = stabilization_s
        self._cooldown_s = cooldown_s
        self._wanted = collections.deque()  # (when, how many) within the stabilization
        self._last_lag_s = -math.inf

    def decide(self, now_s, lag, replicas):
        if lag > 0:
            self._last_lag_s = now_s
        if replicas == 0:
            self._wanted.clear()
            return min(lag, 1)
        if now_s - self._last_lag_s >= self._cooldown_s:
            return 0
        wanted = min(max(math.ceil(lag / self._lag_threshold), 1), self._replicas_max)
        self._wanted.append((now_s, wanted))
        while self._wanted[0][0] < now_s - self._stabilization_s:
            self._wanted.popleft()
        return max(wanted, min(replicas, max(count for _, count in self._wanted)))
