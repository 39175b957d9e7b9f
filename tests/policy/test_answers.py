"""The table of answers, Retry-After, and what counts as an acknowledgement (DESIGN section 6)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_app.policy import answers
from queue_app.policy.answers import RETRY_AFTER_MAX_MS, Answer, Verdict, ack_fault, effect_possible, failed, refused
from queue_app.policy.orders import check_code

NOW_MS = 784_111_777_000  # Sun, 06 Nov 1994 08:49:37 GMT


def test_each_code_is_short_stable_and_listed_once():
    codes = [answer.code for answer in answers.ANSWERS]
    assert len(codes) == len(set(codes))
    assert [check_code(code) for code in codes] == codes


def test_each_code_has_a_sentence_of_its_own():
    sentences = [answer.sentence for answer in answers.ANSWERS]
    assert len(sentences) == len(set(sentences))
    assert all(sentence.endswith(".") and sentence[0].isupper() for sentence in sentences)


@pytest.mark.parametrize(
    ("statuses", "kind"),
    [
        ([408, 425, 429, 500, 501, 502, 503, 504, 505, 507, 511, 599], "retry"),
        ([400, 409, 410, 413, 422], "permanent"),
        ([401, 403, 404, 405, 402, 406, 411, 415, 418, 428, 431, 451, 499], "unknown"),
        ([202, 203, 204, 205, 206, 207, 226, 299, 300, 301, 302, 303, 304, 307, 308, 600, 999], "unknown"),
    ],
)
def test_a_status_has_the_kind_that_the_contract_gives_it(statuses, kind):
    assert {status: refused(status, [], NOW_MS).kind for status in statuses} == dict.fromkeys(statuses, kind)


@pytest.mark.parametrize(
    ("status", "code"), [(503, "http_503"), (599, "http_599"), (302, "redirect"), (304, "http_304"), (418, "http_418")]
)
def test_the_code_of_a_status_is_its_number_unless_it_points_elsewhere(status, code):
    assert refused(status, [], NOW_MS).code == code


@pytest.mark.parametrize(
    "code",
    [
        *("dns", "connect_refused", "connection_failed", "timeout_connect", "tls", "bad_order", "deadline_passed"),
        *(f"http_{status}" for status in (400, 401, 403, 404, 405, 409, 410, 413, 422, 425, 429)),
    ],
)
def test_no_effect_is_possible_where_nothing_was_sent_or_the_receiver_refused(code):
    assert effect_possible(code) is False


@pytest.mark.parametrize(
    "code",
    [
        *(
            "timeout_write",
            "timeout_read",
            "timeout_total",
            "connection_lost",
            "short_body",
            "lease_expired",
            "bad_ack",
        ),
        *("wrong_id", "not_ok", "bad_json", "redirect", "oversize", "compressed", "bad_http", "wait_budget"),
        *("http_408", "http_500", "http_503", "http_599", "http_202", "http_418", "http_9999"),
        *("exception", "", "a_code_of_next_year", "unknown"),
    ],
)
def test_an_effect_is_possible_after_every_other_code_known_or_not(code):
    assert effect_possible(code) is True


@given(st.text(max_size=40))
def test_any_text_is_a_code_that_has_a_sentence(code):
    found = answers.answer_for(code)
    assert found.code == code
    assert found.sentence


@pytest.mark.parametrize(
    "answer",
    [
        Answer("http_503", "retry", True, "The receiver was not available (503)."),
        Answer("http_599", "retry", True, "The receiver failed (599)."),
        *(
            Answer(f"http_{status}", "unknown", True, f"The receiver gave an answer that was not agreed on ({status}).")
            for status in (100, 499, 600)
        ),
        *(
            Answer(code, "unknown", True, "What happened at the receiver is not known.")
            for code in ("", "http_050", "http_5000", "http_50", "http_\u0665\u0660\u0660", "xhttp_500", "HTTP_500")
        ),
    ],
    ids=lambda answer: answer.code,
)
def test_a_code_has_its_row_or_that_of_its_class_or_is_not_known(answer):
    assert answers.answer_for(answer.code) == answer


def test_a_failed_delivery_takes_its_kind_from_the_table():
    assert failed("tls") == Verdict("retry", "tls", None)
    assert failed("wrong_id") == Verdict("unknown", "wrong_id", None)


@pytest.mark.parametrize(
    ("values", "wait_ms"),
    [
        ([], None),
        (["0"], 0),
        (["7"], 7_000),
        ([" 7\t"], 7_000),
        (["007"], 7_000),
        (["3600"], 3_600_000),
        (["3601"], RETRY_AFTER_MAX_MS),
        (["1000000000"], RETRY_AFTER_MAX_MS),
        (["99999999999999999999"], RETRY_AFTER_MAX_MS),
        (["9" * 10_000], RETRY_AFTER_MAX_MS),
        (["0" * 10_000], 0),
        (["-5"], None),
        (["+5"], None),
        (["1e9"], None),
        (["1.5"], None),
        (["٣"], None),
        (["３"], None),
        (["²"], None),
        (["\xd9\xa3"], None),
        ([""], None),
        (["soon"], None),
        (["5, 5"], None),
        (["5", "5"], None),
        (["5", "9"], None),
        (["5\n"], None),
        (["Sun, 06 Nov 1994 08:49:57 GMT"], 20_000),
        (["Sunday, 06-Nov-94 08:49:57 GMT"], 20_000),
        (["Sun, 06 Nov 1994 08:49:57 -0000"], 20_000),
        (["Sun, 06 Nov 1994 08:49:57"], 20_000),
        (["Sun, 06 Nov 1994 09:49:47 +0100"], 10_000),
        (["Sun, 06 Nov 1994 08:49:37 GMT"], 0),
        (["Sat, 05 Nov 1994 08:49:37 GMT"], 0),
        (["Wed, 01 Jan 1000 00:00:00 +1400"], 0),
        (["Fri, 31 Dec 9999 23:59:59 GMT"], RETRY_AFTER_MAX_MS),
        (["Fri, 31 Dec 9999 23:59:59 -1400"], RETRY_AFTER_MAX_MS),
        (["Sun, 06 Nov 99999 08:49:37 GMT"], None),
        (["Sun, 31 Feb 1994 08:49:37 GMT"], None),
        (["Sun, 06 Nov 1994 25:61:61 GMT"], None),
        (["Sun, " + "x" * 70_000], None),
        (["Sun, 06 Nov 1994 08:49:57 GMT (" + "x" * 32 + ")"], 20_000),  # 64 characters
        (["Sun, 06 Nov 1994 08:49:57 GMT (" + "x" * 33 + ")"], None),
        (["S, 06 Nov 1994 08:49:57 GMT"], 20_000),
        (["06 Nov 1994 08:49:57 GMT"], None),
        (["X7"], None),
        (["7X"], None),
        (["99999999"], RETRY_AFTER_MAX_MS),
    ],
)
def test_retry_after_is_bounded_or_ignored(values, wait_ms):
    assert answers.retry_after_ms(values, NOW_MS) == wait_ms


@given(st.lists(st.text(max_size=80), max_size=2), st.integers(0, 2**53))
def test_retry_after_never_raises_and_never_leaves_its_bounds(values, now_ms):
    wait_ms = answers.retry_after_ms(values, now_ms)
    assert wait_ms is None or 0 <= wait_ms <= RETRY_AFTER_MAX_MS


@given(st.from_regex(r"[A-Z][a-z]{2}, [0-9]{1,3} [A-Z][a-z]{2} [0-9]{1,5} [0-9:]{1,9} [-+A-Z0-9]{1,8}", fullmatch=True))
def test_things_that_look_like_dates_never_raise(text):
    wait_ms = answers.retry_after_ms([text], NOW_MS)
    assert wait_ms is None or 0 <= wait_ms <= RETRY_AFTER_MAX_MS


@pytest.mark.parametrize(("status", "wait_ms"), [(429, 7_000), (503, 7_000), (500, None), (408, None), (422, None)])
def test_only_429_and_503_may_ask_for_a_wait(status, wait_ms):
    assert refused(status, ["7"], NOW_MS).retry_after_ms == wait_ms


def test_a_refusal_is_held_against_the_clock_whole():
    date = "Sun, 06 Nov 1994 08:49:57 GMT"
    assert refused(503, [date], NOW_MS) == Verdict("retry", "http_503", 20_000)
    assert refused(429, [date], NOW_MS + 20_001) == Verdict("retry", "http_429", 0)
    assert refused(307, [date], NOW_MS) == Verdict("unknown", "redirect", None)
    assert refused(422, [date], NOW_MS) == Verdict("permanent", "http_422", None)


@pytest.mark.parametrize(
    "body",
    [
        b'{"ok":true,"id":"o1"}',
        b' {"id": "o1", "ok": true, "duplicate": true, "more": [1, {"id": "other"}]}\r\n',
        b'{"ok":true,"id":"\\u006f1"}',
    ],
)
def test_a_true_ok_with_the_id_sent_is_an_acknowledgement(body):
    assert ack_fault(body, "o1") is None


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b'{"ok":true,"id":"o2"}', "wrong_id"),
        (b'{"ok":true,"id":"O1"}', "wrong_id"),
        (b'{"ok":true,"id":"o1 "}', "wrong_id"),
        (b'{"ok":true,"id":"\\ud800"}', "wrong_id"),
        (b'{"ok":true,"id":["o1"]}', "wrong_id"),
        (b'{"ok":true}', "wrong_id"),
        (b'{"ok":"true","id":"o1"}', "not_ok"),
        (b'{"ok":1,"id":"o1"}', "not_ok"),
        (b'{"ok":1.0,"id":"o1"}', "not_ok"),
        (b'{"ok":[true],"id":"o1"}', "not_ok"),
        (b'{"ok":false,"id":"o1"}', "not_ok"),
        (b'{"ok":null,"id":"o1"}', "not_ok"),
        (b'{"id":"o1"}', "not_ok"),
        (b'{"OK":true,"id":"o1"}', "not_ok"),
        (b"[true]", "bad_json"),
        (b'["o1"]', "bad_json"),
        (b'"o1"', "bad_json"),
        (b"true", "bad_json"),
        (b"", "bad_json"),
        (b"<html><body>Sign in to the network</body></html>", "bad_json"),
        (b'\xef\xbb\xbf{"ok":true,"id":"o1"}', "bad_json"),
        ('{"ok":true,"id":"o1"}'.encode("utf-16"), "bad_json"),
        ('{"ok":true,"id":"o1"}'.encode("utf-16-le"), "bad_json"),
        (b'{"ok":true,"id":"o1","x":"\xff"}', "bad_json"),
        (b'{"ok":true,"id":"o1","x":"\xed\xa0\x80"}', "bad_json"),
        (b'{"ok":false,"ok":true,"id":"o1"}', "bad_json"),
        (b'{"ok":true,"id":"o2","id":"o1"}', "bad_json"),
        (b'{"ok":true,"id":"o1","x":{"a":1,"a":1}}', "bad_json"),
        (b'{"ok":true,"id":"o1","x":NaN}', "bad_json"),
        (b'{"ok":true,"id":"o1","x":-Infinity}', "bad_json"),
        (b'{"ok":true,"id":"o1","x":' + b"7" * 5_000 + b"}", "bad_json"),
        (b"[" * 100_000, "bad_json"),
        (b'{"a":' * 100_000, "bad_json"),
        (b'{"ok":true,"id":"o1"', "bad_json"),
        (b'{"ok":true,"id":"o1"}{"ok":true,"id":"o1"}', "bad_json"),
        (b'{"ok":true,"id":"o1"}\x00', "bad_json"),
    ],
)
def test_everything_else_is_none_and_says_why(body, fault):
    assert ack_fault(body, "o1") == fault


@given(st.binary(max_size=300))
def test_random_bytes_are_no_acknowledgement_and_never_raise(body):
    assert ack_fault(body, "o1") in ("bad_json", "not_ok", "wrong_id")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["ok", "id", "x"]), inner, max_size=3),
    max_leaves=10,
)


@given(JSON)
def test_an_acknowledgement_is_exactly_true_and_exactly_the_id(value):
    acknowledged = isinstance(value, dict) and value.get("ok") is True and value.get("id") == "o1"
    assert (ack_fault(json.dumps(value).encode(), "o1") is None) == acknowledged
