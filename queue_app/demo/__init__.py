"""The demo: the whole product on one machine, with real orders and a receiver that fails on purpose."""
