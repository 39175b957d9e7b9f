"""A comparison with the receiver as lines for a terminal."""

from collections.abc import Iterator

from queue_app.policy.reconciling import FORGOTTEN, IN_FLIGHT, KINDS
from queue_app.services.reconciling import Result


def of_result(result: Result) -> Iterator[str]:
    """The result in people's words: a verdict, each kind with its meaning and examples, and the sums of both sides."""
    if result.differing:
        yield f"DIFFERENT: {result.differing:,} of {result.compared:,} orders."
    else:
        yield f"The same: {result.compared:,} orders, no difference."
    for kind in KINDS:
        if n := result.kinds.get(kind.word, 0):
            yield f"  {n:,}  {kind.label}. {kind.meaning}"
            named = [job_id for word, job_id in result.examples if word == kind.word]
            if named:
                more = " ..." if len(named) < n else ""
                yield f"        {' '.join(named)}{more}"
    if result.passing.get(IN_FLIGHT):
        yield f"  {result.passing[IN_FLIGHT]:,} are being delivered just now; the next comparison judges them."
    if result.passing.get(FORGOTTEN):
        yield f"  {result.passing[FORGOTTEN]:,} are older than the receiver promises to remember."
    here, there = result.here, result.there
    yield (
        f"here:     {here['done'] + here['pruned']:,} delivered ({here['done_pieces']:,} pieces), {here['dead']:,} in "
        f"quarantine, {here['pending']:,} waiting, {here['leased']:,} being delivered"
    )
    yield (
        f"receiver: {there['keys']:,} delivered ({there['stock']:,} pieces) by {there['writes']:,} writes, "
        f"{there['requests']:,} requests"
    )
