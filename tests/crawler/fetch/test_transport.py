import socket
from ipaddress import ip_network

import aiohttp
import pytest

from freshet.crawler.errors import Unfetched
from freshet.crawler.fetch.addresses import AddressGuard, CachingResolver
from freshet.crawler.fetch.transport import AddressRefused, guarded_connector, own_failures


async def connect(guard: AddressGuard, host: str, address: str = "") -> None:
    resolver = CachingResolver(overrides={host: address} if address else {})
    async with aiohttp.ClientSession(connector=guarded_connector(guard, resolver, None)) as session:
        await session.get(f"http://{host}:9/")


@pytest.mark.parametrize(
    ("host", "address"),
    [("inside.example", "10.0.0.1"), ("localhost", ""), ("127.0.0.1", ""), ("[::1]", ""),
     ("[::ffff:169.254.169.254]", ""), ("metadata.example", "fd00:ec2::254")],
)  # fmt: skip
async def test_no_socket_is_opened_to_a_refused_address(host: str, address: str) -> None:
    with pytest.raises(aiohttp.ClientConnectorError) as caught:
        await connect(AddressGuard(), host, address)
    assert isinstance(caught.value.os_error, AddressRefused)


async def test_a_name_is_reached_at_its_allowed_address() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    # localhost is ::1 as well, which stays refused.
    guard = AddressGuard(allow_networks=(ip_network("127.0.0.0/8"),))
    connector = guarded_connector(guard, CachingResolver(), None)
    timeout = aiohttp.ClientTimeout(sock_read=0.05)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        with pytest.raises(aiohttp.ServerTimeoutError):
            await session.get(f"http://localhost:{port}/")
    accepted, (address, _) = listener.accept()
    accepted.close()
    listener.close()
    assert address == "127.0.0.1"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "timeout_connect"),
        (aiohttp.ServerDisconnectedError(), "hung_up"),
        (aiohttp.ClientOSError(104, "reset"), "hung_up"),
        (aiohttp.InvalidURL("http://"), "url"),
    ],
)
def test_foreign_exceptions_become_ours_with_a_word_and_a_sentence(
    error: Exception, reason: str
) -> None:
    with pytest.raises(Unfetched) as caught, own_failures():
        raise error
    assert caught.value.reason == reason
    assert caught.value.detail
    assert "\n" not in caught.value.detail
    assert caught.value.__cause__ is error


def test_unforeseen_exceptions_pass() -> None:
    with pytest.raises(ZeroDivisionError), own_failures():
        raise ZeroDivisionError
