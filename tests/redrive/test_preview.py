"""What the preview counts as left out is what a freeze leaves out."""

import pytest
from django.contrib.auth.models import User

from queue_app.policy.selections import by_ids
from queue_app.policy.terms import Terms
from queue_app.reads.previews import preview
from tests.conftest import Clock
from tests.redrive.story import SNACKS, ask, die, frozen

pytestmark = pytest.mark.django_db


def test_an_order_that_is_both_held_and_too_old_is_left_out_once(operator: User, clock: Clock) -> None:
    old = die(5)
    ask(operator, by_ids(old))
    clock.advance(3_600_000)
    die(4, first=100)
    terms = Terms(1_000_000, canary=0, max_dead_ms=1_800_000)
    shown = preview(SNACKS, terms, clock.now)
    assert (shown.n.n, shown.too_old, shown.held, shown.eligible) == (9, 5, {}, 4)
    assert frozen(ask(operator, SNACKS, terms)).planned == shown.eligible
