"""A plain HTTP client for these tests: one connection for each request unless a test holds one open itself."""

import http.client
import json
import socket
import threading
import urllib.parse
from dataclasses import dataclass

LIMIT_S = 20


@dataclass
class Reply:
    status: int
    document: dict
    headers: dict


def request(url, method, path, body=None, headers=()):
    """Send one request; `headers` are pairs, so that one may stand twice. Raises what http.client raises."""
    link = connect(url)
    try:
        link.putrequest(method, path)
        raw = b"" if body is None else body
        if body is not None:
            link.putheader("Content-Length", str(len(raw)))
        for name, value in headers:
            link.putheader(name, value)
        link.endheaders(raw)
        answer = link.getresponse()
        return Reply(answer.status, json.loads(answer.read() or b"{}"), dict(answer.headers))
    finally:
        link.close()


def connect(url):
    parts = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=LIMIT_S)


def post_order(url, order_id, quantity, **more):
    body = json.dumps({"id": order_id, "quantity": quantity, **more}).encode()
    return request(url, "POST", "/orders", body, [("Idempotency-Key", order_id)])


def get(url, path):
    return request(url, "GET", path)


def totals(url):
    return get(url, "/ledger").document["totals"]


def requests_of(url):
    return {row["id"]: row["requests"] for row in get(url, "/ledger?limit=1000").document["orders"]}


def set_faults(url, *faults):
    return request(url, "POST", "/faults", json.dumps({"faults": faults}).encode())


def raw_socket(url):
    parts = urllib.parse.urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=LIMIT_S)


def read_all(link):
    """Everything until the peer closes."""
    parts = []
    while part := link.recv(65536):
        parts.append(part)
    return b"".join(parts)


def together(*calls):
    """Run the calls in threads released by a barrier and give back their results in order."""
    barrier = threading.Barrier(len(calls))
    results = [None] * len(calls)

    def run(place, call):
        barrier.wait(LIMIT_S)
        results[place] = call()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    return results
