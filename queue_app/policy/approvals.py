"""What a decision on a redrive may and must say: who decides, what may be made stricter, when the number is typed."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from queue_app.policy.canaries import Group
from queue_app.policy.errors import NotAllowed, gettext_noop
from queue_app.policy.plans import InvalidPlan, PlanMoved
from queue_app.policy.refusals import half_width, shown
from queue_app.policy.terms import MAX_CANARY, MIN_RATE_MJ, preset, rate_text

TYPED_ABOVE = 1_000
STALE_MS = 7 * 86_400_000  # dead for longer than a week: look twice whether anybody still wants these orders

# code -> whether the approver must type the number because of it; the others only inform
WARNINGS = {
    "mixed": True,  # more than one cause
    "stale": True,  # the oldest is dead for longer than STALE_MS
    "ordered_queue": True,  # order within a key matters here
    "effect_possible": True,  # some may already have been delivered
    "redriven_before": True,  # some were redriven before and came back
    "queue_paused": False,
    "no_worker": False,
    "no_redriver": False,
    "no_trial": False,
    "nobody_looked": False,
}

_DIGITS = re.compile(r"[0-9]{1,12}")
_GROUPING = re.compile("[,.'’ \u00a0\u202f]")


@dataclass(frozen=True, slots=True)
class Warned:
    """One warning with its number: for `stale` the age of the oldest in ms, else how many orders it is about (or 0)."""

    code: str
    n: int = 0


@dataclass(frozen=True, slots=True)
class Tightening:
    """What the approver changes: None and empty leave it as asked. Rates in thousandths of a job/s."""

    rate_mj: int | None = None
    canary: int | None = None
    left_out: tuple[Group, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """What a decision on one round says: `n` orders begin or stay (those of causes left out not counted), at most at this
    rate (thousandths of a job/s), after a trial of `canary`. `left_out`: every cause left out so far."""

    plan: int
    decision: str
    n: int
    rate_mj: int
    canary: int
    left_out: tuple[Group, ...] = ()


def cause_text(group: Group) -> str:
    """A cause as records and terminals write it: `permanent/http_422`, `exhausted/-` without a code."""
    return f"{group[0]}/{group[1] or '-'}"


def _english(one: str, many: str, n: int) -> str:
    return one if n == 1 else many


def recorded_sentences(
    grant: Grant,
    who: str,
    *,
    gettext: Callable[[str], str] = str,
    ngettext: Callable[[str, str, int], str] = _english,
    comma: str = ", ",
) -> tuple[str, ...]:
    """The exact sentences that a decision is recorded with (DESIGN section 8, "Approve"): one or two.

    The record keeps them in English; pages and receipts show the same ones through their language's catalog.
    """
    values = {
        "who": who,
        "plan": grant.plan,
        "n": f"{grant.n:,}",
        "rate": rate_text(grant.rate_mj),
        "canary": f"{grant.canary:,}",
    }
    if grant.decision == "reject":
        sentence = ngettext(
            "%(who)s rejects R-%(plan)s: %(n)s order stays in quarantine. Identity proved by password.",
            "%(who)s rejects R-%(plan)s: %(n)s orders stay in quarantine. Identity proved by password.",
            grant.n,
        )
        return (sentence % values,)
    if grant.canary:
        sentence = ngettext(
            "%(who)s approves R-%(plan)s: %(n)s order at up to %(rate)s/s, with a trial of %(canary)s first. "
            "Identity proved by password.",
            "%(who)s approves R-%(plan)s: %(n)s orders at up to %(rate)s/s, with a trial of %(canary)s first. "
            "Identity proved by password.",
            grant.n,
        )
    else:
        sentence = ngettext(
            "%(who)s approves R-%(plan)s: %(n)s order at up to %(rate)s/s, without a trial. "
            "Identity proved by password.",
            "%(who)s approves R-%(plan)s: %(n)s orders at up to %(rate)s/s, without a trial. "
            "Identity proved by password.",
            grant.n,
        )
    if not grant.left_out:
        return (sentence % values,)
    causes = comma.join(cause_text(group) for group in grant.left_out)
    return sentence % values, gettext("Left out: %(causes)s.") % {"causes": causes}


def granted(
    wish: Tightening,
    *,
    plan: int,
    rate_mj: int,
    canary: int,
    at_stake: Mapping[Group, int],
    left_out: Collection[Group],
) -> Grant:
    """What an approval with this wish grants: None leaves the rate of now and the trial that the round has anyway.

    `at_stake`: waiting orders of each cause that no earlier round left out; `left_out`: those that one did.
    """
    return Grant(
        plan,
        "approve",
        sum(n for group, n in at_stake.items() if group not in wish.left_out),
        rate_mj if wish.rate_mj is None else wish.rate_mj,
        canary if wish.canary is None else wish.canary,
        tuple(sorted({*left_out, *wish.left_out})),
    )


def least_trial(canary: int, round_: int) -> int:
    """The size that the trial of the next round has at least: what went wrong without one gets one."""
    return canary if canary or not round_ else preset("normal", MIN_RATE_MJ).canary


def must_type_count(n: int, warnings: Sequence[Warned]) -> bool:
    """Whether the approver types the number: over 1,000, mixed or warned about (DESIGN section 12).

    A single order asks for no typing unless it is stale: there is no number to be wrong about.
    """
    if n <= 1:
        return any(warned.code == "stale" for warned in warnings)
    return n > TYPED_ABOVE or any(WARNINGS[warned.code] for warned in warnings)


def check_typed(typed: object, n: int) -> None:
    """InvalidPlan unless the typed number is `n`; the marks that group digits on screens are passed over."""
    text = _GROUPING.sub("", typed) if type(typed) is str else ""
    if _DIGITS.fullmatch(text) and int(text) == n:
        return
    if not typed:
        raise InvalidPlan(gettext_noop("Type the number of orders, %(n)s, to approve."), field="typed", n=n)
    offered = half_width(typed, _DIGITS) if isinstance(typed, str) else None
    raise InvalidPlan(
        gettext_noop("Type the number of orders, %(n)s, to approve; this is %(given)s."),
        field="typed",
        offered=offered or "",
        n=n,
        given=shown(typed),
    )


def check_two_people(requested_by: int | None, decided_by: int, *, solo: bool) -> bool:
    """Whether one person decides alone on the own plan (only with `solo`); NotAllowed without it. By id, not by name."""
    if requested_by is None or requested_by != decided_by:
        return False
    if not solo:
        raise NotAllowed(gettext_noop("Nobody decides on what they asked for themselves."))
    return True


def check_seen(digest: object, round_: object, *, now_digest: str, now_round: int) -> None:
    """PlanMoved unless what the person saw is what stands now: the list by its digest, and the round."""
    if digest != now_digest or type(round_) is not int or round_ != now_round:
        raise PlanMoved(gettext_noop("The list or the round changed since this page was loaded: look again."))


def check_tightening(
    wish: Tightening, *, asked_rate_mj: int, asked_canary: int, groups: Collection[Group]
) -> Tightening:
    """The wish as it is, or InvalidPlan: an approver makes a redrive slower, its trial larger or its list shorter."""
    if wish.rate_mj is not None and not (type(wish.rate_mj) is int and MIN_RATE_MJ <= wish.rate_mj <= asked_rate_mj):
        raise InvalidPlan(
            gettext_noop("An approver may only make it slower than the %(asked)s orders/s asked for."),
            field="rate",
            asked=rate_text(asked_rate_mj),
        )
    if wish.canary is not None and not (type(wish.canary) is int and asked_canary <= wish.canary <= MAX_CANARY):
        raise InvalidPlan(
            gettext_noop("The trial may only become larger: from %(asked)s to %(most)s orders."),
            field="canary",
            asked=asked_canary,
            most=MAX_CANARY,
        )
    if not set(wish.left_out) <= set(groups):
        raise InvalidPlan(gettext_noop("A cause that is left out must be one of this list."), field="left_out")
    if groups and set(wish.left_out) >= set(groups):
        raise InvalidPlan(
            gettext_noop("With every cause left out nothing remains to redrive: reject it instead."), field="left_out"
        )
    return wish
