"""What stands between a queue and its receiver: the delivery rate of all workers together, and the breaker.

The engine asks here inside its transactions: before it hands out, after it has handed out, and when attempts have ended.
Both live in the queue's one row of `gates`, so they hold over all workers and hosts and over every restart.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from queue_app.policy import breakers, buckets
from queue_app.policy.attempts import Lease, Result
from queue_app.policy.breakers import CLOSED, FAILS, OPEN, Breaker, Rules
from queue_app.policy.buckets import Bucket
from queue_app.policy.queues import QueuePolicy
from queue_app.services import programs
from queue_app.store import chain, gates, queues
from queue_app.store.gates import Gate


@dataclass(frozen=True, slots=True)
class Grant:
    """How many jobs may be handed out now; `gate`: as held until the commit when that was limited, else None."""

    n: int
    gate: Gate | None = None


def granted(policy: QueuePolicy, now_ms: int, limit: int) -> Grant:
    """How many of `limit` jobs may be handed out now, from 0 on. Who is granted some holds the gate until the commit when
    the number is limited, so that two claimers never share what is there for one."""
    if policy.delivery_rate_mj is None and not policy.breaker_after:
        return Grant(limit)
    gate = gates.read(policy.name)
    if policy.delivery_rate_mj is None and gate.breaker.state == CLOSED:
        return Grant(limit)
    set_back = policy.delivery_rate_mj is not None and buckets.is_set_back(gate.bucket, now_ms)
    if not set_back and _free(policy, gate, now_ms, limit) == 0:
        return Grant(0)
    gate = gates.locked(policy.name)
    if set_back:  # else nothing would be granted until the clock is where it was
        bucket = buckets.resumed(gate.bucket, now_ms)
        _surely(gates.spend(gate, bucket), policy.name)
        gate = replace(gate, bucket=bucket)
    return Grant(_free(policy, gate, now_ms, limit), gate)


def took(grant: Grant, policy: QueuePolicy, leases: Sequence[Lease], now_ms: int) -> None:
    """These were handed out (at least one): they count against the rate, and the only one past an open breaker is the
    probe. What is given back unstarted later is not refunded: the rate is a limit, never a promise."""
    gate = grant.gate
    if gate is None:
        return
    if policy.delivery_rate_mj is not None:
        bucket = _refilled(gate, policy.delivery_rate_mj, now_ms)
        _surely(gates.spend(gate, buckets.spent(bucket, len(leases))), policy.name)
    if policy.breaker_after and gate.breaker.state != CLOSED:
        (probe,) = leases
        _surely(gates.move(gate, breakers.probing(gate.breaker, probe.id, probe.token)), policy.name)


def ended(queue: str, results: Sequence[Result], now_ms: int) -> None:
    """These attempts of one queue have ended together, in any order.

    An answer that proves nothing comes as outcome `unknown`. As long as the receiver works this writes nothing, and a
    failure beside an answer is no sign against it.
    """
    seen = gates.read(queue).breaker
    fails = any(breakers.told(result.outcome, result.code) == FAILS for result in results)
    if seen.state == CLOSED and not seen.failed_in_row and not fails:
        return
    policy = queues.policy_of(queue)
    if policy is None or not (policy.breaker_after or seen.failed_in_row):
        return
    rules = Rules(policy.breaker_after, policy.breaker_wait_ms)
    if breakers.after_ends(seen, results, rules, now_ms) == seen:
        return  # as if these had ended right before what may be written beside it: nobody waits for the gate
    gate = gates.locked(queue)
    after = breakers.after_ends(gate.breaker, results, rules, now_ms)
    if after != gate.breaker:
        _surely(gates.move(gate, after), queue)
        _write_down(queue, gate.breaker, after, results, now_ms)


def _free(policy: QueuePolicy, gate: Gate, now_ms: int, limit: int) -> int:
    free = limit
    if policy.delivery_rate_mj is not None:
        free = min(free, _refilled(gate, policy.delivery_rate_mj, now_ms).jobs)
    breaker = gate.breaker
    if breaker.state != CLOSED:
        runs = gates.is_leased(breaker.probe_job, breaker.probe_token, now_ms)
        rules = Rules(policy.breaker_after, policy.breaker_wait_ms)
        through = breakers.lets_through(breaker, rules, now_ms, probe_runs=runs)
        free = free if through is None else min(free, through)
    return free


def _refilled(gate: Gate, rate_mj: int, now_ms: int) -> Bucket:
    return buckets.refilled(gate.bucket, rate_mj, buckets.moment_of(gate.bucket, now_ms))


def _write_down(queue: str, before: Breaker, after: Breaker, results: Sequence[Result], now_ms: int) -> None:
    """Opening and closing are in the record; that a probe failed, and waits longer, is seen on the pages."""
    if before.state == CLOSED and after.state == OPEN:
        codes = Counter(one.code for one in results if breakers.told(one.outcome, one.code) == FAILS)
        told = {"failed_in_row": after.failed_in_row, "code": max(codes, key=lambda code: (codes[code], code))}
        silent_ms = now_ms - (after.silent_since_ms or now_ms)
        event = programs.queue_event("breaker.open", queue, now_ms, silent_ms=silent_ms, **told)
    elif before.state != CLOSED and after.state == CLOSED:
        event = programs.queue_event("breaker.close", queue, now_ms, open_ms=max(0, now_ms - before.since_ms))
    else:
        return
    chain.append([event])


def _surely(moved: bool, queue: str) -> None:
    if not moved:
        raise RuntimeError(f"The gate of {queue} moved inside the transaction that holds it.")
