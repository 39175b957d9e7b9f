"""Requests that nobody means: generated from a seed, so that what fails can be sent again."""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from django.urls import URLPattern, URLResolver, get_resolver

from queue_app.policy.cursors import Cursor
from queue_app.policy.filters import Filter

WORDS = (
    *("", " ", "a ", " a", "a\n", "a\0b", "\0", "-a", "..", "../x", "a/b", "a%2Fb", "a%00", "a?x", "con", ".", "-"),
    *("а", "ａ", "\u212a", "ｱ", "é", "e\u0301", "\u202eabc", "\u200b", "\ufeff", "\U0001f36a", "\ud800"),
    *("INC-1\u202e", "аpproved", "_", "%"),
    *("' OR 1=1 --", "'; DROP TABLE jobs; --", '" OR ""="', "1) UNION SELECT 1--", "id;drop", "%' AND 1=1", "\\'", "a_b%"),
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "${jndi:ldap://x}", "{{7*7}}", "{% now %}"),
    *("%s", "%(x)s", "%d"),
    *("0", "-1", "-0", "+1", "1.0", "1e3", "1_0", "١", "１", "NaN", "inf", "Infinity", "1,5", "0x10", "1e400"),
    *(str(2**31), str(2**63 - 1), str(2**63), str(2**64), str(10**15), str(10**20), "9" * 5000),
    *("1" * 10_000, "x" * 10_000),
    *("2024-02-30", "2026-03-29T02:30", "2026-10-25T02:30", "9999-12-31T23:59:59Z", "0000-00-00"),
    *("2026-11-29T02:30+99:99", "\x1b[31m", "http_503", "90m", "3d"),
    *("true", "True", "None", "null", "undefined", "[]", "{}", "__proto__", "constructor", "=1+1", "ok\nINFO forged"),
    *("permanent", "exhausted", "deadline", "snacks", "drinks", "yes", "no", "oldest", "newest", "csv", "jsonl"),
    *("25", "200", "looking", "fixed", "INC-2041", "h-1", "h-2", "1", "7"),
)  # fmt: skip
NAMES = (
    *("queue", "reason", "code", "effect", "died_from", "died_to", "min_age", "max_age", "id", "attempts_min"),
    *("redriven", "looked", "state", "sort", "size", "cursor", "as_of", "seen", "before", "window", "page", "saved"),
    *("attempts_max", "partial", "job", "ids", "note", "finding", "comment", "format", "name", "for_all", "next"),
    *("approved_by", "requested_by"),
    *("rate", "cap", "canary", "share", "digest", "typed", "action", "target", "actor"),
    *("password", "round", "decision", "left_out", "move", "preset", "steps", "stop", "canary_wait", "max_dead"),
    *("max_attempts", "budget", "form_key", "recalculate", "which", "why", "after", "who", "from", "to", "outcome"),
    *("x", "__class__", "id[]", "a b", "\0"),
)  # fmt: skip
GOOD_PARTS = {"job": "h-1", "queue": "snacks", "slug": "permanent", "small": "1", "str": "x", "int": "1"}
# what a form means for once, so that what lies behind its first check is reached too; there is no right password
MEANT = {
    "queue": "snacks",
    "note": "INC-1",
    "form_key": "k" * 32,
    "preset": "careful",
    "rate": "1",
    "steps": "0.5x60",
    "stop": "50",
    "canary": "1",
    "canary_wait": "10m",
    "cap": "2",
    "max_dead": "7d",
    "max_attempts": "2",
    "budget": "1h",
    "round": "1",
    "decision": "approve",
    "left_out": "permanent|http_422",
    "typed": "3",
    "password": "not the right one",
    "which": "skipped",
    "why": "left_out",
    "after": "1",
    "before": "3",
    "recalculate": "1",
    "reason": "permanent",
    "format": "csv",
    "ids": "h-1 h-2",
    "comment": "<i>why</i>",
    "who": "oda",
    "action": "plan.ask",
    "target": "plan:1",
    "to": "2026-11-29T02:30",
}
MOVES = ("pause", "resume", "slow", "stop", "withdraw", "cancel")
NOT_ASKED = re.compile(r"sign_|password|preferences|language|theme|livez|readyz|djdt")


@dataclass(frozen=True)
class Asked:
    """One request: everything that the test client needs."""

    method: str
    path: str
    data: bytes = b""
    content_type: str = "application/x-www-form-urlencoded"
    headers: dict[str, str] = field(default_factory=dict)


def routes(patterns: list[URLPattern | URLResolver] | None = None) -> list[str]:
    """The routes of all pages for signed-in people, as they stand in the urlconf."""
    found: list[str] = []
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(pattern, URLResolver):
            found += routes(pattern.url_patterns)
        elif not NOT_ASKED.search(str(pattern.name)):
            found.append(str(pattern.pattern))
    return found


def asked(seed: int, n: int, plans: dict[int, str] | None = None) -> Iterator[Asked]:
    """`n` requests, the same for the same seed; `plans`: the redrives that there are, each with the seal of its list."""
    maker = _Maker(random.Random(seed), routes(), plans or {})
    for _one in range(n):
        yield maker.one()


class _Maker:
    def __init__(self, chance: random.Random, known: list[str], plans: dict[int, str]) -> None:
        self._chance, self._routes, self._plans = chance, known, plans
        self._of_redrives = [route for route in known if route.startswith("redrives/")]

    def one(self) -> Asked:
        chance = self._chance
        route = chance.choice(self._of_redrives if chance.random() < 0.3 else self._routes)
        path = "/" + re.sub(r"<(?:(\w+):)?\w+>", self._part, route)
        if self._plans and route.startswith("redrives/") and chance.random() < 0.3:
            return self._form(path)
        pairs = [(chance.choice(NAMES), self._value()) for _each in range(chance.choice((0, 1, 1, 2, 3, 6)))]
        if pairs and chance.random() < 0.15:
            pairs.append((pairs[0][0], self._value()))  # one parameter, two values
        if chance.random() < 0.25:
            pairs.append(("cursor", self._cursor()))
        query = _encoded(pairs)
        if chance.random() < 0.6:
            return Asked("GET", f"{path}?{query}", headers=self._headers())
        return self._sent(path, query)

    def _form(self, path: str) -> Asked:
        """A form of a redrive that is meant but for one or two fields."""
        chance = self._chance
        names = (
            "digest",
            "round",
            "note",
            "rate",
            "canary",
            "typed",
            "password",
            "decision",
            "move",
            "queue",
            "form_key",
        )
        fields = {name: MEANT.get(name, "") for name in names}
        fields |= {"digest": chance.choice(list(self._plans.values())), "move": chance.choice(MOVES)}
        for _each in range(chance.choice((0, 1, 2))):
            fields[chance.choice(NAMES)] = self._value()
        return Asked("POST", path, _encoded(list(fields.items())).encode(), headers=self._headers())

    def _sent(self, path: str, query: str) -> Asked:
        shape = self._chance.random()
        if shape < 0.8:
            return Asked("POST", path, query.encode(), headers=self._headers())
        if shape < 0.85:
            return Asked("POST", path, b'{"note": 1, "ids": [' + b"[" * 50, "application/json", self._headers())
        if shape < 0.9:
            body = b'--b\r\nContent-Disposition: form-data; name="note"; filename="\0.php"\r\n\r\n\xff\0\r\n--b--\r\n'
            return Asked("POST", path, body, "multipart/form-data; boundary=b", self._headers())
        if shape < 0.95:
            return Asked("POST", path, b"&".join(b"ids=h-%d" % k for k in range(1_500)), headers=self._headers())
        return Asked("POST", path, b"note=%ff%fe&comment=" + b"%00" * 3_000, headers=self._headers())

    def _part(self, match: re.Match[str]) -> str:
        if self._chance.random() < 0.5:
            if match[1] == "small" and self._plans:
                return str(self._chance.choice(list(self._plans)))
            return GOOD_PARTS[match[1] or "str"]
        text = self._value() or "-"
        return quote(text.encode("utf-8", "surrogatepass"), safe="" if self._chance.random() < 0.8 else "/%")

    def _value(self) -> str:
        chance = self._chance
        text = chance.choice(WORDS)
        dice = chance.random()
        if dice < 0.1:
            return text + chance.choice(WORDS)
        if dice < 0.2:
            return "".join(chr(chance.randrange(1, 0x3000)) for _each in range(chance.randrange(1, 12)))
        return text

    def _cursor(self) -> str:
        chance = self._chance
        numbers = [chance.choice((0, 1, 5, 10**12, 2**53, 2**63, 10**19)) for _each in range(3)]
        wanted = chance.choice((Filter(), Filter(queue="snacks"), Filter(reason="permanent")))
        text = Cursor(
            wanted.digest(), chance.choice(("oldest", "newest", "x")), chance.random() < 0.5, *numbers
        ).encode()
        if chance.random() < 0.5:
            at = chance.randrange(len(text))
            text = chance.choice((text[:at], text[:at] + "A" + text[at + 1 :], text[::-1], text + "=", text * 40))
        return text

    def _headers(self) -> dict[str, str]:
        chance = self._chance
        if chance.random() < 0.7:
            return {}
        odd = {
            "Accept-Language": chance.choice(("de-x-zzzz,*;q=9", "ja", "zh-Hans", ",,,", "x" * 4_000, "\x01")),
            "HX-Request": "true",
            "HX-Current-URL": chance.choice(("javascript:alert(1)", "//evil", "\x01", "http://[::1")),
            "If-Modified-Since": "garbage",
            "If-None-Match": 'W/"x',
            "Range": "bytes=0-9999999999999999999",
            "X-HTTP-Method-Override": "DELETE",
            "X-Forwarded-For": "' OR 1=1 --",
            "Cookie": chance.choice(("django_language=../../x", "sessionid=\x7f", "a" * 8_000)),
        }
        names = chance.sample(sorted(odd), 2)
        return {name: odd[name] for name in names if name != "Cookie" or chance.random() < 0.1}


def _encoded(pairs: list[tuple[str, str]]) -> str:
    encoded: list[tuple[Any, Any]] = [(name, value.encode("utf-8", "surrogatepass")) for name, value in pairs]
    return urlencode(encoded)
