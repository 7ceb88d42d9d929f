import pytest
from tabmuxd.cdp.message import Event, Refusal, Reply, decode, encode


@pytest.mark.parametrize(
    ("data", "meaning"),
    [
        (b'{"id":1,"result":{"a":1}}', Reply(1, {"a": 1}, None)),
        (b'{"id":1,"result":{},"sessionId":"S"}', Reply(1, {}, None)),
        (b'{"id":1,"error":{"code":-32000,"message":"no"}}', Reply(1, {}, Refusal(-32000, "no", ""))),
        (b'{"id":1,"error":{"code":1,"message":"no","data":"x"}}', Reply(1, {}, Refusal(1, "no", "x"))),
        (b'{"method":"A.b","params":{"c":2},"sessionId":"S"}', Event("A.b", {"c": 2}, "S")),
        (b'{"method":"A.b"}', Event("A.b", {}, "")),
        (b"", None),
        (b"garbage", None),
        (b"\xff\xfe\xfd", None),
        (b"[" * 100_000, None),
        (b"[1]", None),
        (b"null", None),
        (b"{}", None),
        (b'{"result":{}}', None),
        (b'{"id":"1","result":{}}', None),
        (b'{"id":1,"result":[]}', None),
        (b'{"id":1}', None),
        (b'{"error":{"code":-32700,"message":"parse"}}', None),
        (b'{"method":7}', None),
        (b'{"method":"A.b","params":[]}', None),
        (b'{"method":"A.b","sessionId":5}', None),
    ],
)
def test_decode(data: bytes, meaning: object) -> None:
    """A frame is a reply, an event, or nothing at all, whatever it holds."""
    assert decode(data) == meaning


def test_encode() -> None:
    """A call names its session only where it has one, and is plain ASCII."""
    assert encode(1, "A.b", None, "") == b'{"id":1,"method":"A.b","params":{}}'
    assert encode(2, "A.b", {"c": "é"}, "S") == b'{"id":2,"method":"A.b","params":{"c":"\\u00e9"},"sessionId":"S"}'


@pytest.mark.parametrize("value", [float("nan"), object(), b"bytes"])
def test_encode_refuses(value: object) -> None:
    """What JSON has no form for is refused before anything is sent."""
    with pytest.raises((TypeError, ValueError)):
        encode(1, "A.b", {"value": value}, "")
