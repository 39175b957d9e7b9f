"""A worker of the first release, frozen: its SQL on the plain driver, as its schema (migration 0001) had it.

`python -m tests.growth.release_one work`: DATABASE_URL names the database. It takes five orders at once with a long lease and
keeps them; then it accepts, claims and ends orders, and says that it lives, until its standard input ends; at last it ends
the five. Trouble with the database makes it wait and begin anew, as that release did. Prints `working`, then one JSON line.

`... lay`: migration 0001 alone, with the rows that the first release made. Must not follow the product: that is its purpose.
"""

import json
import os
import select
import sqlite3
import sys
import time
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

HOUR = 3_600_000


class House:
    """A connection of either driver, with the first release's way to begin and to commit."""

    def __init__(self, url):
        self.url, self.postgresql = url, urlsplit(url).scheme.startswith("postgres")
        self.open()

    def open(self):
        if self.postgresql:
            import psycopg

            self.session = psycopg.connect(self.url)
            self.trouble = psycopg.OperationalError
        else:
            self.session = sqlite3.connect(
                unquote(self.url.removeprefix("sqlite:///")), timeout=20, isolation_level=None
            )
            self.session.execute("PRAGMA journal_mode=PERSIST")
            self.session.execute("PRAGMA recursive_triggers=ON")
            self.trouble = sqlite3.OperationalError

    def run(self, sql, *values):
        return self.session.execute(sql if self.postgresql else sql.replace("%s", "?"), values)

    @contextmanager
    def write(self):
        if not self.postgresql:
            self.run("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.session.rollback()
            raise
        self.session.commit()


def now_ms():
    return time.time_ns() // 1_000_000


def accept(house, ids):
    with house.write():
        now = now_ms()
        for job_id in ids:
            if house.postgresql:
                (seq,) = house.run("SELECT nextval('jobs_seq')").fetchone()
            else:
                (seq,) = house.run("UPDATE heads SET seq = seq + 1 WHERE name = 'jobs' RETURNING seq").fetchone()
            house.run(
                "INSERT INTO jobs (id, seq, queue, order_key, quantity, payload, state, reason, code, attempts, "
                "max_attempts, token, available_at, deadline, created_at_ms, changed_at_ms, redriven, waited_ms) "
                "VALUES (%s, %s, 'snacks', '', 1, '{}', 'pending', '', '', 0, 2, 0, %s, %s, %s, %s, 0, 0)",
                job_id, seq, now, now + 24 * HOUR, now, now,
            )  # fmt: skip


def claim(house, owner, limit, lease_ms):
    with house.write():
        now = now_ms()
        (paused,) = house.run("SELECT paused FROM queues WHERE name = 'snacks'").fetchone()
        if paused:
            return []
        sql = (
            "SELECT j.id, j.state, j.token FROM jobs AS j WHERE j.queue = 'snacks' AND j.state IN ('pending', 'leased') "
            "AND j.available_at <= %s AND (j.state = 'pending' OR j.lease_until <= %s) AND j.attempts < j.max_attempts "
            "ORDER BY j.available_at, j.seq LIMIT %s"
        ) + (" FOR UPDATE OF j SKIP LOCKED" if house.postgresql else "")
        taken = []
        for job_id, state, token in house.run(sql, now, now, limit).fetchall():
            moved = house.run(
                "UPDATE jobs SET state = 'leased', owner = %s, lease_until = %s, attempts = attempts + 1, "
                "token = token + 1, changed_at_ms = %s WHERE id = %s AND state = %s AND token = %s",
                owner, now + lease_ms, now, job_id, state, token,
            )  # fmt: skip
            if moved.rowcount == 1:
                taken.append((job_id, token + 1))
        return taken


def finish(house, owner, job_id, token, how):
    with house.write():
        now = now_ms()
        change = {"ok": "state = 'done'", "permanent": "state = 'dead', reason = 'permanent', code = 'http_422'"}[how]
        moved = house.run(
            f"UPDATE jobs SET {change}, owner = NULL, lease_until = NULL, changed_at_ms = %s "
            "WHERE id = %s AND state = 'leased' AND token = %s",
            now, job_id, token,
        )  # fmt: skip
        if moved.rowcount == 1 and how == "permanent":
            house.run(
                "INSERT INTO failures (job_id, token, attempt, at_ms, outcome, code, worker) "
                "SELECT %s, %s, 1, %s, 'permanent', 'http_422', %s "
                "WHERE NOT EXISTS (SELECT 1 FROM failures WHERE job_id = %s AND token = %s)",
                job_id, token, now, owner, job_id, token,
            )  # fmt: skip
        return moved.rowcount == 1


def beat(house, owner):
    with house.write():
        now = now_ms()
        moved = house.run("UPDATE processes SET seen_at_ms = %s, stopped_at_ms = NULL WHERE name = %s", now, owner)
        if not moved.rowcount:
            house.run(
                "INSERT INTO processes (name, kind, queue, started_at_ms, seen_at_ms, detail) "
                "VALUES (%s, 'worker', 'snacks', %s, %s, '')",
                owner, now, now,
            )  # fmt: skip


def patiently(house, told, move, *values):
    """A move that the database may refuse for a while; how often it did is told."""
    for _ in range(60):
        try:
            return move(house, *values)
        except house.trouble as error:
            told["troubles"].append(str(error).splitlines()[0])
            time.sleep(0.2)
            house.session.close()
            house.open()
    raise SystemExit("the database never took it")


def work(house, owner="first-release"):
    told = {"accepted": 0, "done": 0, "dead": 0, "refused": 0, "troubles": [], "longest_wait_ms": 0, "kept": []}
    patiently(house, told, accept, [f"kept-{n}" for n in range(5)])
    kept = patiently(house, told, claim, owner, 5, HOUR)
    last, rounds = now_ms(), 0
    while not (rounds > 3 and select.select([sys.stdin], [], [], 0)[0]):
        ids = [f"first-{rounds}-{n}" for n in range(3)]
        patiently(house, told, accept, ids)
        told["accepted"] += len(ids)
        for n, (job_id, token) in enumerate(patiently(house, told, claim, owner, 3, 30_000)):
            how = "permanent" if (rounds + n) % 4 == 0 else "ok"
            time.sleep(0.002)  # as long as a quick delivery takes
            ended = patiently(house, told, finish, owner, job_id, token, how)
            told["dead" if how == "permanent" else "done" if ended else "refused"] += 1
        patiently(house, told, beat, owner)
        told["longest_wait_ms"] = max(told["longest_wait_ms"], now_ms() - last)
        last, rounds = now_ms(), rounds + 1
        if rounds == 3:
            print("working", flush=True)
    told["kept"] = [patiently(house, told, finish, owner, job_id, token, "ok") for job_id, token in kept]
    print(json.dumps(told), flush=True)


def lay():
    import django

    django.setup()
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    from queue_app.policy.chain import GENESIS
    from queue_app.store import triggers

    executor = MigrationExecutor(connection)
    first = ("queue_app", "0001_initial")
    executor.migrate([node for node in executor.loader.graph.leaf_nodes() if node[0] != "queue_app"] + [first])
    triggers.create_all()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO queues (name) VALUES ('snacks')")
        cursor.execute("INSERT INTO heads (name, hash) VALUES ('jobs', '')")
        cursor.execute("INSERT INTO heads (name, hash) VALUES ('chain', %s)", [GENESIS])


if __name__ == "__main__":
    if sys.argv[1] == "lay":
        lay()
    else:
        work(House(os.environ["DATABASE_URL"]))
