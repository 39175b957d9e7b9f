"""Two moves at the same moment, each in a thread with a database connection of its own."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connections

LIMIT_S = 60


class Pair:
    """Two threads; `race` releases one move in each at once. The `refusals` of the product count as answers."""

    def __init__(self, *refusals: type[Exception], seed: int = 7, longest_spin: int = 2_000) -> None:
        self._pool = ThreadPoolExecutor(2)
        self._chance = random.Random(seed)
        self._refusals, self._longest_spin = refusals, longest_spin

    def race(self, *moves: Callable[[], Any]) -> list[Any]:
        """The two answers; a refusal's type stands for it."""
        barrier = threading.Barrier(2, timeout=LIMIT_S)
        # who comes first is left to chance, but to a fair one: a short spin after the barrier
        spins = [self._chance.randrange(self._longest_spin) for _ in moves]

        def run(move: Callable[[], Any], spin: int) -> Any:
            barrier.wait()
            for _ in range(spin):
                pass
            try:
                return move()
            except self._refusals as refusal:
                return type(refusal)

        futures = [self._pool.submit(run, move, spin) for move, spin in zip(moves, spins, strict=True)]
        return [future.result(LIMIT_S) for future in futures]

    def close(self) -> None:
        """Each thread closes its own connection."""
        self.race(connections.close_all, connections.close_all)
        self._pool.shutdown()
