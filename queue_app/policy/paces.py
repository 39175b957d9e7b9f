"""How many jobs a worker takes ahead and ends together, from how long a delivery takes: pure numbers in and out.

A commit costs the same for one job as for a hundred, so fast jobs go in groups; a slow job waits for nobody, and none
lies in one worker's hand while another worker idles.
"""

MAX_GROUP = 100
MAX_AHEAD = 500
GATHER_MS = 80  # fast jobs wait so long for company, at most
FASTEST_SLOW_MJ = 100_000  # below 100 jobs/s nothing is gathered: a group would hold two


def group(rate_mj: int) -> int:
    """How many ended jobs make a transaction worth its commit, from 1 to 100; `rate_mj` is the `capacity_mj`."""
    if rate_mj < FASTEST_SLOW_MJ:
        return 1
    return min(rate_mj * GATHER_MS // 1_000_000, MAX_GROUP)


def ahead(rate_mj: int, commit_ms: int) -> int:
    """How many jobs to hold besides those being delivered, so that nobody waits for a commit; 0 for slow jobs."""
    if rate_mj < FASTEST_SLOW_MJ:
        return 0
    return min(rate_mj * (GATHER_MS + 3 * commit_ms) // 1_000_000 + group(rate_mj), MAX_AHEAD)


def capacity_mj(hands: int, mean_us: int) -> int:
    """How many jobs so many hands could deliver, in thousandths of a job/s, if one takes `mean_us`; 0: not known yet.

    Not how many were ended: that is less when the worker waits for its own commits, and a worker that judged by it
    would stay as slow as its first commits.
    """
    return hands * 1_000_000_000 // mean_us if mean_us > 0 else 0


def mean_us(before_us: int, ended: int, took_ms: int, silent_ms: int) -> int:
    """What one delivery takes, after `ended` more took `took_ms` in all, or after a silence in which none ended."""
    if not ended:
        return max(before_us, silent_ms * 1_000)
    latest = max(took_ms * 1_000 // ended, 50)
    return latest if not before_us else before_us + (latest - before_us) * min(ended, 16) // 32
