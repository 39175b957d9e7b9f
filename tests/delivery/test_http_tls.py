"""Delivery over TLS: the same limits, and nothing for a receiver that cannot prove its name (DESIGN section 6)."""

import ssl

import pytest

from queue_app.policy.answers import effect_possible
from tests.delivery.conftest import SOON_S, outcome, timed
from tests.delivery.rawserver import HOLD, READ, RESET, TAKE, Drip, RawServer, answer


def anonymous(side):
    """A context whose two sides agree on encryption without a certificate: it is for tests of the transport only."""
    context = ssl.SSLContext(side)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ADH:AECDH:@SECLEVEL=0")
    return context


CLIENT, SERVER = ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER


def test_orders_travel_over_tls(adapter):
    with RawServer([READ, answer(), READ, answer()], tls=anonymous(SERVER)) as server:
        delivery = adapter(server.url, ssl_context=anonymous(CLIENT))
        assert [outcome(delivery), outcome(delivery)] == [("done", ""), ("done", "")]
        assert server.connections == 1


def test_the_total_limit_holds_under_tls(adapter):
    with RawServer([READ, Drip(answer(), 0.05), HOLD], tls=anonymous(SERVER)) as server:
        result, took_s = timed(adapter(server.url, ssl_context=anonymous(CLIENT), total_ms=450))
    assert result == ("retry", "timeout_total")
    assert took_s < SOON_S


def test_a_receiver_without_an_accepted_certificate_gets_nothing(adapter):
    with RawServer([READ, answer()], tls=anonymous(SERVER)) as server:
        assert outcome(adapter(server.url)) == ("retry", "tls")
    assert server.requests == []
    assert not effect_possible("tls")


@pytest.mark.parametrize("script", [[answer(), HOLD], [b"\x15\x03\x01\x00\x02\x02\x46", HOLD], [], [TAKE, RESET]])
def test_a_failed_handshake_may_be_tried_again(adapter, script):
    with RawServer(script) as server:
        assert outcome(adapter(server.url.replace("http:", "https:"))) == ("retry", "tls")


@pytest.mark.parametrize("script", [[HOLD], [Drip(b"\x16\x03\x03\x40\x00" + b"\x02" * 99, 0.05), HOLD]])
@pytest.mark.parametrize("limit", ["connect_ms", "total_ms"])
def test_a_handshake_that_never_ends_is_bounded(adapter, script, limit):
    with RawServer(script) as server:
        result, took_s = timed(adapter(server.url.replace("http:", "https:"), **{limit: 200}))
    assert result == ("retry", "timeout_connect")
    assert took_s < SOON_S
