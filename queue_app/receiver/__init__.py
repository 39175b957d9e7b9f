"""The demo receiver: a small HTTP service that takes orders and moves its stock, in a process and database of its own.

It knows nothing of the queue but the HTTP contract (DESIGN section 6), and imports nothing of the rest of the product.

What it promises
- An id has at most one effect *here*: id and stock move in one transaction, on the disk before the answer is sent.
- Same id and quantity again: `duplicate: true` and no second effect, however often and late. Same id with another
  quantity: 409. Records are never deleted, so this holds longer than any redrive horizon.
- A full or broken disk gives a 5xx answer, no record and no effect; the process lives on.
- Induced faults depend on rule, id and request number only: the same run has the same failures.

What it does not promise
- No exactly-once anywhere else. A receiver without such a record needs a query, an adjustment, or a person.
- Nothing after its database is lost: then the same id counts as new.
- No rights: whoever reaches the port may post orders and, in demo mode, change the faults. Keep it on loopback.

Read in this order: `orders` (what an order is), `faults` (when to fail), `ledger` (the one transaction), `routes`
(request -> answer), `handler` and `server` (bytes and threads).
"""
