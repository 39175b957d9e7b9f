"""The rate of a redrive, or of a queue, as a bucket that fills with time: pure arithmetic in whole numbers.

A level counts millionths of a job (uj), a rate thousandths of a job per second (mj), so that a rate of R mj fills R uj in
each millisecond and nothing is ever rounded. The state lies in the database: however many redrivers there are, and
however often they restart, there is one bucket.
"""

from collections.abc import Sequence
from dataclasses import dataclass

JOB_UJ = 1_000_000
BURST_MS = 250  # the bucket holds one job and what so much time grants: the most that one tick can do
RIVALS_MS = 5_000  # so much earlier is no clock that was set back, but a taker who waited for another one's commit
TICK_MS = 50  # a tick is worth its commit once so much time granted jobs

BITE = (25, 200)  # items of one tick; fewer would only pay the price of a commit more often
HELD_MS = 15  # what a tick aims at, so that it holds the write lock 20 ms at most; the bite follows


@dataclass(frozen=True, slots=True)
class Bucket:
    """`level_uj` is what may be spent; `at_ms` the instant up to which time was counted."""

    level_uj: int
    at_ms: int

    @property
    def jobs(self) -> int:
        """Whole jobs that may be started now."""
        return self.level_uj // JOB_UJ


def fresh(now_ms: int) -> Bucket:
    """The bucket of a batch that begins: its first job need not wait."""
    return Bucket(JOB_UJ, now_ms)


def capacity_uj(rate_mj: int) -> int:
    """What the bucket holds at most. With room for one job only, a tick that comes late would lose its lateness."""
    return JOB_UJ + rate_mj * BURST_MS


def window_ms(rate_mj: int) -> int:
    """The most time that counts at once: what fills an empty bucket."""
    return -(-capacity_uj(rate_mj) // rate_mj)


def refilled(bucket: Bucket, rate_mj: int, now_ms: int) -> Bucket:
    """The bucket at `now_ms`. Time counts within [0, window]: a clock set back grants nothing and blocks nothing, a
    long absence or a clock set forward grants one bucket at most."""
    elapsed = min(max(now_ms - bucket.at_ms, 0), window_ms(rate_mj))
    return Bucket(min(capacity_uj(rate_mj), bucket.level_uj + rate_mj * elapsed), now_ms)


def moment_of(bucket: Bucket, now_ms: int) -> int:
    """The instant that counts when several take at once: who waited for another's commit had looked at the clock before
    that, and the time between must not be granted twice."""
    return now_ms if is_set_back(bucket, now_ms) else max(now_ms, bucket.at_ms)


def is_set_back(bucket: Bucket, now_ms: int) -> bool:
    """Whether the clock was set back since the bucket was written: earlier by more than any taker waits for another."""
    return bucket.at_ms - now_ms > RIVALS_MS


def spent(bucket: Bucket, jobs: int) -> Bucket:
    """The bucket after so many jobs. ValueError for more than it holds: the rate would be broken."""
    if not 0 <= jobs <= bucket.jobs:
        raise ValueError(f"{jobs} jobs do not fit into a bucket of {bucket.jobs}.")
    return Bucket(bucket.level_uj - jobs * JOB_UJ, bucket.at_ms)


def resumed(bucket: Bucket, now_ms: int) -> Bucket:
    """The bucket after a pause: the time of the pause grants nothing."""
    return Bucket(bucket.level_uj, now_ms)


def due_in_ms(bucket: Bucket, rate_mj: int, now_ms: int) -> int:
    """How long until a tick is worth its commit: it may start what TICK_MS grants, or one job if that is more. 0: now."""
    elapsed = now_ms - bucket.at_ms
    if elapsed < 0:
        return 0  # the clock was set back: the next tick notes the new time
    missing = max(JOB_UJ, rate_mj * TICK_MS) - bucket.level_uj
    return max(-(-missing // rate_mj), 0) - elapsed


def rate_at(rate_mj: int, steps: Sequence[tuple[int, int]], ran_ms: int) -> int:
    """The rate after so much running time: each step holds for its seconds, then the full rate; never above it."""
    for step_mj, seconds in steps:
        ran_ms -= seconds * 1_000
        if ran_ms < 0:
            return min(step_mj, rate_mj)
    return rate_mj


def duration_ms(jobs: int, rate_mj: int, steps: Sequence[tuple[int, int]] = ()) -> int:
    """How long so many jobs take at this pace, the waiting for a trial's results not counted."""
    left_uj = jobs * JOB_UJ
    total = 0
    for step_mj, seconds in steps:
        step_rate = min(step_mj, rate_mj)
        fills = step_rate * seconds * 1_000
        if fills >= left_uj:
            return total + -(-left_uj // step_rate)
        left_uj -= fills
        total += seconds * 1_000
    return total + -(-left_uj // rate_mj)


def next_bite(bite: int, held_ms: int) -> int:
    """The items of the next tick after one that held the lock so long, so that it is held about HELD_MS: at most twice as
    many, within BITE."""
    return max(BITE[0], min(BITE[1], bite * 2, bite * HELD_MS // max(held_ms, 1)))
