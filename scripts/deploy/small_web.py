"""Sites and a mail server for programs in a network of their own."""

import socketserver
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit


@dataclass(slots=True)
class SmallWeb:
    """Pages by URL without scheme (``shop.example/tea``), and the mails that came."""

    pages: dict[str, str] = field(default_factory=dict)
    mails: list[str] = field(default_factory=list)


def certificate(folder: Path, names: Sequence[str]) -> tuple[Path, Path]:
    """Make a certificate of these hosts and its key; return both files."""
    made, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "400"]
    command += ["-subj", "/CN=first minutes", "-keyout", str(key), "-out", str(made)]
    command += ["-addext", "subjectAltName=" + ",".join(f"DNS:{name}" for name in names)]
    subprocess.run(command, check=True, capture_output=True)
    return made, key


def _pages_of(web: SmallWeb) -> type[BaseHTTPRequestHandler]:
    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host = (self.headers["Host"] or "").partition(":")[0]
            found = web.pages.get(host + urlsplit(self.path).path)
            body = (found or "<title>Not found</title><p>There is no such page.").encode()
            # Whose clock runs fast may have given up.
            with suppress(OSError):
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
            pass

    return Pages


def _mails_to(web: SmallWeb) -> type[socketserver.StreamRequestHandler]:
    class Mails(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            # `freshet watch` only asks whether somebody answers.
            with suppress(ConnectionError):
                self._talk()

        def _talk(self) -> None:
            self.wfile.write(b"220 ready\r\n")
            for line in self.rfile:
                verb = line.strip().upper()
                if verb == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    text = b"".join(iter(self.rfile.readline, b".\r\n"))
                    web.mails.append(_readable(text))
                self.wfile.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 ok\r\n")
                if verb == b"QUIT":
                    return

    return Mails


def _readable(mail: bytes) -> str:
    message = message_from_bytes(mail, policy=policy.default)
    body = message.get_body(("plain", "html"))
    text = body.get_content() if body else ""
    return f"To: {message['To']}\nSubject: {message['Subject']}\n\n{text}"


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


@contextmanager
def served(
    web: SmallWeb, addresses: Mapping[str, str], certified: tuple[Path, Path]
) -> Iterator[SmallWeb]:
    """Serve the sites at their addresses by HTTP and HTTPS, and take mail on this machine."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certified)
    servers: list[socketserver.BaseServer] = [_Server(("127.0.0.1", 25), _mails_to(web))]
    for address in addresses.values():
        servers.append(ThreadingHTTPServer((address, 80), _pages_of(web)))
        secured = ThreadingHTTPServer((address, 443), _pages_of(web))
        secured.socket = tls.wrap_socket(
            secured.socket, server_side=True, do_handshake_on_connect=False
        )
        servers.append(secured)
    with ExitStack() as open_servers:
        for server in servers:
            open_servers.enter_context(server)
            Thread(target=server.serve_forever, daemon=True).start()
            open_servers.callback(server.shutdown)
        yield web
