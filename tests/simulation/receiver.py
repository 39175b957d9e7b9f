"""A receiver in memory that keeps the contract of DESIGN section 6, and the network before it, which does not."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from queue_app.policy.attempts import Lease


@dataclass(slots=True)
class Flight:
    """One request on its way: when it arrives, or never (None), and what the sender is told in the end."""

    job: str
    quantity: int
    arrives_ms: int | None
    answer: str


@dataclass(slots=True)
class Receiver:
    """`effects` counts effects per id; `deaf_until` is the end of an outage. `forgets`: planted, keeps no ids."""

    rng: Random
    now: Callable[[], int]
    effects: dict[str, int] = field(default_factory=dict)
    quantities: dict[str, int] = field(default_factory=dict)
    duplicates: int = 0
    deaf_until: int = 0
    flights: list[Flight] = field(default_factory=list)
    forgets: bool = False

    def send(self, lease: Lease) -> Flight:
        """What becomes of this request is drawn now; it arrives later, also when its sender is dead by then."""
        fate = self.rng.random()
        at = self.now() + self.rng.choice((0, 0, 5, 50, 3_000))
        if self.now() < self.deaf_until:
            flight = Flight(lease.id, lease.quantity, None, "http_503")
        elif hash_of(lease.id) % 7 == 0 and fate < 0.7:
            flight = Flight(lease.id, lease.quantity, None, "http_422")
        elif fate < 0.62:
            flight = Flight(lease.id, lease.quantity, at, "ok")
        elif fate < 0.76:
            flight = Flight(lease.id, lease.quantity, at, "timeout")  # the answer is lost, the effect is not
        elif fate < 0.92:
            flight = Flight(lease.id, lease.quantity, None, "http_503")
        else:
            flight = Flight(lease.id, lease.quantity, at if fate < 0.96 else None, "bad_ack")
        self.flights.append(flight)
        return flight

    def arrivals(self) -> None:
        """Everything whose time has come takes effect, once per id."""
        now = self.now()
        due = [flight for flight in self.flights if flight.arrives_ms is not None and flight.arrives_ms <= now]
        self.flights = [flight for flight in self.flights if flight.arrives_ms is not None and flight.arrives_ms > now]
        for flight in due:
            if flight.job in self.effects and not self.forgets:
                self.duplicates += 1
                continue
            self.effects[flight.job] = self.effects.get(flight.job, 0) + 1
            self.quantities[flight.job] = flight.quantity

    def answered(self, flight: Flight) -> str:
        """The answer as it stands now: `ok` only once the request has arrived."""
        self.arrivals()
        return "" if flight in self.flights else flight.answer


def hash_of(job_id: str) -> int:
    """Some ids are refused by this receiver again and again, so that a trial sees both ends."""
    return sum(job_id.encode())
