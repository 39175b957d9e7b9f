"""How many jobs a worker takes ahead and ends together, from how fast they end: pure numbers in and out.

A commit costs the same for one job as for a hundred, so fast jobs go in groups; a slow job waits for nobody, and none
lies in one worker's hand while another worker idles.
"""

MAX_GROUP = 100
MAX_AHEAD = 500
GATHER_MS = 80  # fast jobs wait so long for company, at most
FASTEST_SLOW_MJ = 100_000  # below 100 jobs/s nothing is gathered: a group would hold two


def group(rate_mj: int) -> int:
    """How many ended jobs make a transaction worth its commit, from 1 to 100; the rate in thousandths of a job/s."""
    if rate_mj < FASTEST_SLOW_MJ:
        return 1
    return max(1, min(rate_mj * GATHER_MS // 1_000_000, MAX_GROUP))


def ahead(rate_mj: int, commit_ms: int) -> int:
    """How many jobs to hold besides those being delivered, so that nobody waits for a commit; 0 for slow jobs."""
    if rate_mj < FASTEST_SLOW_MJ:
        return 0
    return min(rate_mj * (GATHER_MS + 3 * commit_ms) // 1_000_000 + group(rate_mj), MAX_AHEAD)


def rate_mj(before_mj: int, ended: int, span_ms: int) -> int:
    """The rate after `ended` jobs in the last `span_ms`; what is older than half a second hardly counts any more."""
    if span_ms <= 0:
        return before_mj
    latest = ended * 1_000_000 // span_ms
    weight = min(span_ms, 250)
    return before_mj + (latest - before_mj) * weight // 250
