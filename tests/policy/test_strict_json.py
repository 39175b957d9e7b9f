"""A receiver's answer has one reading or none."""

import pytest

from queue_app.policy.strict_json import read_object


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"{}", {}),
        (' {"x":[1,2.5,true,null,{"y":"\u5bff"}]}\r\n'.encode(), {"x": [1, 2.5, True, None, {"y": "\u5bff"}]}),
        (b'{"a":{"x":1},"b":{"x":1}}', {"a": {"x": 1}, "b": {"x": 1}}),
        (b"[]", None),
        (b'"x"', None),
        (b"1", None),
        (b"null", None),
        (b"", None),
        (b"{", None),
        (b"{}{}", None),
        (b'{"a":1,"a":1}', None),
        (b'[{"a":1}]', None),
        (b'{"b":[{"a":1,"a":1}]}', None),
        (b'{"a":NaN}', None),
        (b'{"a":Infinity}', None),
        (b'{"a":-Infinity}', None),
        (b'\xef\xbb\xbf{"a":1}', None),
        (b'{"a":"\xff"}', None),
        (b'{"a":"\xed\xa0\x80"}', None),
        (b'{"a":' + b"9" * 5_000 + b"}", None),
        (b'{"a":' * 50_000, None),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_one_object_or_none(body, found):
    assert read_object(body) == found
