"""Files of orders read to their end: what became of each line."""

from queue_app.policy.errors import InvalidOrder
from queue_app.policy.lines import BadLine
from queue_app.policy.order_files import read_orders
from queue_app.policy.orders import check_order

BAD_QUANTITY = "The quantity must be a whole number from 1 to 1,000,000"
SAMPLE_HEADER = b"order_id\tquantity\titem_name\tchoice_description\titem_total_price\n"


def outcome(data, **named):
    """{line: id or why it was refused}, by the reader and then by the gate of an order."""
    found = {}
    for entry in read_orders([data] if isinstance(data, bytes) else data, **named):
        assert entry.line not in found
        if isinstance(entry, BadLine):
            found[entry.line] = entry.why
        else:
            try:
                found[entry.line] = check_order(**entry.order).id
            except InvalidOrder as error:
                found[entry.line] = str(error)
    assert all(why.isascii() and "secret" not in why for why in found.values())
    return found


def only(data, **named):
    """The file's one line."""
    (entry,) = read_orders([data], **named)
    return entry
