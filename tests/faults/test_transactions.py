"""F26: no transaction reads first and writes later without the lock, and nobody waits for a stranger inside one."""

import pytest

from tests.conftest import BASE_DIR
from tests.faults.transactions import BEGINNERS, MEANT, _all_functions, offences

WRITE = "from queue_app.store import database\nimport time\nfrom queue_app.services import slow\n"


@pytest.fixture(scope="module")
def product():
    return {
        str(path.relative_to(BASE_DIR)): path.read_text(encoding="utf-8")
        for top in ("queue_app", "snackops")
        for path in (BASE_DIR / top).rglob("*.py")
    }


def test_F26_no_transaction_waits_for_anybody_and_none_writes_without_the_lock(product):  # noqa: N802
    assert offences(product) == []
    functions = _all_functions(product, BEGINNERS).values()
    assert sum(bool(function.within) for function in functions) > 40, "the transactions of the product are not found"


def test_what_is_meant_so_is_still_there(product, monkeypatch):
    monkeypatch.setattr("tests.faults.transactions.MEANT", {})
    found = offences(product)
    for path, slow in MEANT:
        assert any(one.startswith(f"{path}:") and one.endswith(slow) for one in found), path


PLANTED = {
    "a pause": "def f():\n  with database.write():\n    time.sleep(1)",
    "a pause two calls away": "def f():\n  with database.write():\n    g()\ndef g():\n  h()\ndef h():\n  time.sleep(1)",
    "a pause in another module": "def f():\n  with database.write():\n    slow.call()",
    "a wait in a method": "class A:\n  def f(self):\n    with database.write():\n      self.g()\n  def g(self):\n    input()",
    "a pause in a function inside": "def f():\n  def g():\n    with database.write():\n      time.sleep(1)\n  return g",
    "a pause beside the transaction": "def f(x):\n  with x, database.write():\n    time.sleep(1)",
    "a request": "import httpx2\ndef f():\n  with database.write():\n    httpx2.post('http://x')",
    "a delivery": "def f(adapter):\n  with database.write():\n    adapter.deliver(1)",
    "a page of the receiver's": "def f(ledger):\n  with database.write():\n    ledger.page(None, 1)",
    "another program": "import subprocess\ndef f():\n  with database.write():\n    subprocess.run(['x'])",
    "a cursor that stays open": "def f(rows):\n  with database.write():\n    rows.iterator()",
    "rows to a slow client": "def f(rows):\n  with database.write():\n    yield from rows",
    "a savepoint": "from django.db import transaction\ndef f():\n  with transaction.atomic():\n    time.sleep(1)",
    "one who lets others in": (
        "from contextlib import contextmanager\n@contextmanager\ndef held():\n  with database.write():\n    yield\n"
        "def f():\n  with held():\n    time.sleep(1)"
    ),
    "by hand": "from django.db import transaction\ndef f():\n  transaction.set_autocommit(False)",
    "a whole request": "ATOMIC_REQUESTS = True",
    "read, then write": "def f(c):\n  c.execute('BEGIN')\n  c.execute('SELECT 1')\n  c.execute('UPDATE jobs SET x = 1')",
    "read, then who knows": "def f(c, sql):\n  c.execute('BEGIN DEFERRED')\n  c.execute(sql)",
}
RIGHT = {
    "the lock first": "def f(c):\n  c.execute('BEGIN IMMEDIATE')\n  c.execute('UPDATE jobs SET x = 1')",
    "only a look": "def f(c):\n  c.execute('BEGIN')\n  c.execute('SELECT 1')\n  c.execute('COMMIT')",
    "a pause afterwards": "def f():\n  with database.write():\n    pass\n  time.sleep(1)",
    "what is made, not called": "def f():\n  with database.write():\n    return time.sleep",
}
SLOW = {"queue_app/services/slow.py": "import time\ndef call():\n  time.sleep(1)\n"}


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED)
def test_a_planted_offence_is_found(source):
    assert len(offences({"queue_app/services/x.py": WRITE + source, **SLOW})) == 1


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_not_found(source):
    assert offences({"queue_app/services/x.py": WRITE + source, **SLOW}) == []
