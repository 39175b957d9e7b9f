"""Words and figures of the screens, in three languages and in zones with gaps and folds."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone, translation

from queue_app.templatetags import look, words
from tests.conftest import Clock

S, MIN, H, D = 1_000, 60_000, 3_600_000, 86_400_000


def ms(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("span", "en", "ja", "zh"),
    [
        (-1, "in the future", "未来の時刻", "未来时间"),
        (0, "0 s", "0 秒", "0 秒"),
        (MIN - 1, "59 s", "59 秒", "59 秒"),
        (MIN, "1 min", "1 分", "1 分钟"),
        (H - 1, "59 min", "59 分", "59 分钟"),
        (H, "1 h", "1 時間", "1 小时"),
        (2 * H + 5 * MIN, "2 h 5 min", "2 時間 5 分", "2 小时 5 分钟"),
        (D, "1 day", "1 日", "1 天"),
        (D + 4 * H, "1 day 4 h", "1 日 4 時間", "1 天 4 小时"),
        (2 * D + H, "2 days 1 h", "2 日 1 時間", "2 天 1 小时"),
        (4 * D + 7 * H, "4 days", "4 日", "4 天"),
        (None, "–", "–", "–"),
    ],
)
def test_an_age_is_said_as_people_say_it(span: int | None, en: str, ja: str, zh: str) -> None:
    for language, said in (("en", en), ("ja", ja), ("zh-hans", zh)):
        with translation.override(language):
            assert words.age(span) == said


@pytest.mark.parametrize(
    ("zone", "at", "shown"),
    [
        ("UTC", ms(2026, 11, 29, 3, 12, 5), "2026-11-29 03:12:05 UTC"),
        ("Asia/Tokyo", ms(2026, 11, 28, 18, 12, 5), "2026-11-29 03:12:05 JST"),
        ("America/Sao_Paulo", ms(2026, 11, 29, 6, 12, 5), "2026-11-29 03:12:05 UTC-03"),
        ("Asia/Kathmandu", ms(2026, 11, 29, 0, 0, 0), "2026-11-29 05:45:00 UTC+0545"),
        ("America/Chicago", ms(2026, 3, 8, 7, 59, 59), "2026-03-08 01:59:59 CST"),
        ("America/Chicago", ms(2026, 3, 8, 8, 0, 0), "2026-03-08 03:00:00 CDT"),
        ("Europe/Berlin", ms(2026, 10, 25, 0, 30), "2026-10-25 02:30:00 CEST"),
        ("Europe/Berlin", ms(2026, 10, 25, 1, 30), "2026-10-25 02:30:00 CET"),
        ("UTC", -1, "1969-12-31 23:59:59 UTC"),
    ],
)
def test_an_instant_names_its_zone_and_tells_both_folds_apart(zone: str, at: int, shown: str) -> None:
    with timezone.override(ZoneInfo(zone)):
        said = words.instant(at)
    assert f">{shown}</time>" in said


def test_an_instant_carries_the_exact_value_for_programs() -> None:
    with timezone.override(ZoneInfo("Asia/Tokyo")):
        said = words.instant(ms(2026, 11, 28, 18, 12, 5) + 7)
    assert 'datetime="2026-11-28T18:12:05.007Z"' in said


@pytest.mark.parametrize("at", [10**15, 10**20, -(10**18)])
def test_an_instant_beyond_the_calendar_is_shown_raw(at: int) -> None:
    assert words.instant(at) == words.moment(at) == f"{at} ms"


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (ms(2027, 1, 15, 6, 41), ">06:41<"),
        (ms(2027, 1, 14, 23, 59), ">01-14 23:59<"),
        (ms(2026, 12, 31, 23, 59), ">2026-12-31 23:59<"),
        (None, "–"),
    ],
)
def test_a_moment_is_as_short_as_it_can_be(clock: Clock, at: int | None, shown: str) -> None:
    assert shown in words.moment(at)


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 0, "none"),
        (0, 9, "0%"),
        (9, 9, "100%"),
        (1, 1000, "<1%"),
        (4, 1000, "<1%"),
        (5, 1000, "1%"),
        (1, 3, "33%"),
        (2, 3, "67%"),
        (994, 1000, "99%"),
        (995, 1000, ">99%"),
        (999_999, 1_000_000, ">99%"),
    ],
)
def test_a_share_never_rounds_something_to_nothing_nor_most_to_all(part: int, whole: int, said: str) -> None:
    assert words.share(part, whole) == said


@pytest.mark.parametrize(
    ("part", "whole", "width"),
    [
        (0, 10, "0"),
        (1, 0, "0"),
        (-1, 10, "0"),
        (1, 10**6, "1.00"),
        (5, 10, "50.00"),
        (10**6 - 1, 10**6, "99.00"),
        (10, 10, "100"),
        (11, 10, "100"),
    ],
)
def test_a_bar_shows_something_for_something_and_a_gap_for_a_gap(part: int, whole: int, width: str) -> None:
    assert look.width_of(part, whole) == width
    assert f'width="{width}"' in look.bar(part, whole)


def test_parts_stand_one_after_the_other_and_never_leave_the_bar() -> None:
    drawn = look.parts(200, 150, "ok", 50, "bad", 10, "quiet")
    assert 'data-tone="ok" x="0.00" width="75.00"' in drawn
    assert 'data-tone="bad" x="75.00" width="25.00"' in drawn
    assert 'data-tone="quiet" x="100.00" width="0.00"' in drawn


def test_a_tone_is_text() -> None:
    assert "<script" not in look.bar(1, 2, '"><script>')


@pytest.mark.parametrize(
    ("tries", "en", "ja", "zh"),
    [
        (None, "gave up after all tries", "規定の回数を試行して打ち切り", "用尽尝试次数后放弃"),
        (0, "gave up after all tries", "規定の回数を試行して打ち切り", "用尽尝试次数后放弃"),
        (1, "gave up after 1 try", "1 回試行して打ち切り", "尝试 1 次后放弃"),
        (2, "gave up after 2 tries", "2 回試行して打ち切り", "尝试 2 次后放弃"),
    ],
)
def test_giving_up_counts_its_tries(tries: int | None, en: str, ja: str, zh: str) -> None:
    for language, said in (("en", en), ("ja", ja), ("zh-hans", zh)):
        with translation.override(language):
            assert words.reason_word("exhausted", tries) == said


def test_words_that_nobody_knows_are_shown_as_they_are() -> None:
    for word in (words.state_word, words.reason_word, words.role_word, words.finding_word):
        assert word("<new>") == "<new>"


@pytest.mark.parametrize(
    ("state", "redriven", "said"),
    [
        ("pending", 0, "waiting for delivery"),
        ("leased", 2, "being delivered"),
        ("done", 0, "delivered"),
        ("dead", 0, "in quarantine"),
        ("dead", 1, "back in quarantine"),
    ],
)
def test_states_have_people_words(state: str, redriven: int, said: str) -> None:
    assert words.state_word(state, redriven) == said


@pytest.mark.parametrize(
    ("attempts", "redriven", "said"), [(0, 0, "new"), (1, 0, "retrying"), (0, 1, "redriven"), (1, 1, "retrying")]
)
def test_waiting_is_new_retrying_or_redriven(attempts: int, redriven: int, said: str) -> None:
    assert words.waiting_word(attempts, redriven) == said


@pytest.mark.parametrize(("value", "said"), [(0, "0"), (999, "999"), (1_234_567, "1,234,567"), (None, "–")])
def test_numbers_are_grouped_alike_in_every_language(value: int | None, said: str) -> None:
    for language in ("en", "ja", "zh-hans", "de"):
        with translation.override(language):
            assert words.number(value) == said


def test_a_sentence_for_a_long_list_is_filled_for_each_row() -> None:
    assert [words.filled("注文 {} を選ぶ", order) for order in ("a-1", "b:2")] == ["注文 a-1 を選ぶ", "注文 b:2 を選ぶ"]
