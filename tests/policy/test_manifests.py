"""What a backup says of itself: read strictly, and held against what was restored."""

import json
from dataclasses import replace
from typing import Any

import pytest

from queue_app.policy.chain import Anchor
from queue_app.policy.manifests import BadManifest, Manifest, Standing, contradictions, parse

TOLD = Standing(
    orders={"done": 3, "dead": 1}, tombstones=2, redrives=1, token_sum=9, token_max=4, digest="d" * 64,
    anchor=Anchor(5, "a" * 64), migrations=("queue_app.0001_initial",),
)  # fmt: skip
MANIFEST = Manifest(1_800_000_000_000, "sqlite", "SQLite 3", "snackops.sqlite3", 4_096, "c" * 64, TOLD)


def test_a_manifest_reads_back_as_it_was_written() -> None:
    assert parse(MANIFEST.text().encode()) == MANIFEST
    assert MANIFEST.text().isascii()


def changed(path: str, value: object) -> bytes:
    record: Any = json.loads(MANIFEST.text())
    *way, last = path.split(".")
    place = record
    for name in way:
        place = place[name]
    place[last] = value
    return json.dumps(record).encode()


DAMAGED = [
    b"", b"\xff", b"[]", b"{}", b"null", b"[" * 100_000, changed("format", True), changed("format", "1"),
    changed("database", "oracle"), changed("file", "../../etc/passwd"), changed("file", "a/b"), changed("file", ""),
    changed("file", 5), changed("sha256", "x"), changed("sha256", None), changed("bytes", -1), changed("bytes", True),
    changed("bytes", 1.5), changed("made_at_ms", "1"), changed("standing", None), changed("standing.orders", []),
    changed("standing.orders", {"done": "3"}), changed("standing.token_sum", None), changed("standing.anchor", "5"),
    changed("standing.digest", "d"), changed("standing.migrations", "queue_app"),
]  # fmt: skip


@pytest.mark.parametrize("raw", DAMAGED, ids=range(len(DAMAGED)))
def test_anything_else_is_refused_in_one_sentence(raw: bytes) -> None:
    with pytest.raises(BadManifest) as caught:
        parse(raw)
    assert str(caught.value).endswith(".")
    assert caught.value.__cause__ is None


def test_a_format_of_tomorrow_is_named() -> None:
    with pytest.raises(BadManifest, match="format 2, and this version reads format 1 only"):
        parse(changed("format", 2))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"orders": {"done": 2, "dead": 1}}, ["had 3 orders in state done, and the copy has 2."]),
        ({"orders": {"done": 3, "dead": 1, "leased": 1}}, ["had 0 orders in state leased, and the copy has 1."]),
        ({"orders": {"done": 3}}, ["had 1 orders in state dead, and the copy has 0."]),
        ({"tombstones": 0}, ["had 2 tombstones, and the copy has 0."]),
        ({"redrives": 0}, ["had 1 redrives, and the copy has 0."]),
        ({"token_sum": 8}, ["Tokens are lower"]),
        ({"token_max": 3}, ["Tokens are lower"]),
        ({"token_sum": 10, "digest": "e" * 64}, ["the digest over all is another"]),
        ({"digest": "e" * 64}, ["the digest over all is another"]),
        ({"anchor": Anchor(4, "b" * 64)}, ["The record ends at 4:"]),
    ],
)
def test_every_contradiction_is_a_sentence(changes: dict[str, Any], words: list[str]) -> None:
    found = contradictions(TOLD, replace(TOLD, **changes))
    assert len(found) == len(words)
    assert all(word in sentence for word, sentence in zip(words, found, strict=True))
