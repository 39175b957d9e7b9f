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

TEXT = f"""{{
  "format": 1,
  "made_at_ms": 1800000000000,
  "database": "sqlite",
  "server": "SQLite 3",
  "file": "snackops.sqlite3",
  "bytes": 4096,
  "sha256": "{"c" * 64}",
  "standing": {{
    "orders": {{
      "done": 3,
      "dead": 1
    }},
    "tombstones": 2,
    "redrives": 1,
    "token_sum": 9,
    "token_max": 4,
    "digest": "{"d" * 64}",
    "anchor": "5:{"a" * 64}",
    "migrations": [
      "queue_app.0001_initial"
    ]
  }}
}}
"""


def test_a_manifest_reads_back_as_it_was_written() -> None:
    assert parse(MANIFEST.text().encode()) == MANIFEST
    assert MANIFEST.text().isascii()


def test_its_file_is_one_value_a_line() -> None:
    assert MANIFEST.text() == TEXT
    nothing = replace(TOLD, orders={"dead": 0}, tombstones=0, redrives=0, token_sum=0, token_max=0, migrations=())
    empty = replace(MANIFEST, made_at_ms=0, bytes=0, standing=nothing)
    assert parse(empty.text().encode()) == empty


def test_a_long_name_of_a_server_is_cut() -> None:
    assert parse(changed("server", "x" * 65)) == replace(MANIFEST, server="x" * 64)


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


DIGEST = "An order's id, state, token or quantity is not what it was: the digest over all is another."
TOKENS = "Tokens are lower than they were: a worker of that time could finish an order again."
RECORD = f"The record ends at 4:{'b' * 64}, and the backup's ended at 5:{'a' * 64}."
OTHER = "e" * 64


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({}, []),
        ({"orders": {"done": 2, "dead": 1}}, ["The backup had 3 orders in state done, and the copy has 2."]),
        (
            {"orders": {"done": 1_003, "leased": 1}},
            [
                "The backup had 1 orders in state dead, and the copy has 0.",
                "The backup had 3 orders in state done, and the copy has 1,003.",
                "The backup had 0 orders in state leased, and the copy has 1.",
            ],
        ),
        ({"tombstones": 0, "digest": OTHER}, ["The backup had 2 tombstones, and the copy has 0."]),
        ({"redrives": 1_000}, ["The backup had 1 redrives, and the copy has 1,000."]),
        ({"token_sum": 8, "digest": OTHER}, [TOKENS]),
        ({"token_max": 3}, [TOKENS]),
        ({"token_sum": 10, "token_max": 5}, []),
        ({"token_sum": 10, "digest": OTHER}, [DIGEST]),
        ({"digest": OTHER}, [DIGEST]),
        ({"anchor": Anchor(4, "b" * 64)}, [RECORD]),
        ({"digest": OTHER, "anchor": Anchor(4, "b" * 64)}, [DIGEST, RECORD]),
    ],
)
def test_every_contradiction_is_a_sentence(changes: dict[str, Any], sentences: list[str]) -> None:
    assert contradictions(TOLD, replace(TOLD, **changes)) == sentences
