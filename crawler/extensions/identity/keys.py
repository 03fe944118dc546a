"""Keys of the crawler: a file of Ed25519 keys (JWK), its rotation, and the public directory.

The file is a JWK Set (RFC 7517, RFC 8037) with the private keys. The newest key
that has begun signs. The others stay in the directory until they expire.
"""

import json
import os
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

from freshet.config.loading import users_file
from freshet.crawler.errors import CrawlError, needs_extra
from freshet.storage.errors import trouble

try:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
except ModuleNotFoundError as error:
    raise CrawlError(needs_extra("signing requests", "identity")) from error

#: Seconds of a day.
DAY_S: Final = 86_400
#: Octets of an Ed25519 key, private or public.
_OCTETS: Final = 32


@dataclass(frozen=True, slots=True)
class IdentityKey:
    """A key, which may sign from ``begins`` until ``ends`` (Unix seconds; None: for good)."""

    private: Ed25519PrivateKey
    begins: int
    ends: int | None = None

    @property
    def public(self) -> str:
        """The public key in base64url."""
        return _encoded(self.private.public_key().public_bytes_raw())

    @property
    def thumbprint(self) -> str:
        """Its name: the SHA-256 thumbprint (RFC 7638; RFC 8037, appendix A.3)."""
        members = json.dumps(
            {"crv": "Ed25519", "kty": "OKP", "x": self.public}, separators=(",", ":")
        )
        return _encoded(sha256(members.encode()).digest())

    def as_jwk(self) -> dict[str, Any]:
        """Return the public key as the directory has it."""
        ends = {} if self.ends is None else {"exp": self.ends}
        return {
            "kty": "OKP", "crv": "Ed25519", "kid": self.thumbprint, "x": self.public, "use": "sig",
            "nbf": self.begins, **ends,
        }  # fmt: skip


#: The keys of a crawler, the oldest first.
IdentityKeys: TypeAlias = Sequence[IdentityKey]


def key_file(said: str) -> Path:
    """Return the path of the keys, given ``identity.key``; raises CrawlError without one."""
    if said:
        return Path(said).expanduser()
    if (beside := users_file()) is None:
        raise CrawlError("identity.key: there is no home directory; set it to a file of yours")
    return beside.with_name("key.json")


def new_key(now: float) -> IdentityKey:
    """Make a key that signs from now on."""
    return IdentityKey(Ed25519PrivateKey.generate(), int(now))


def signing_at(keys: IdentityKeys, now: float) -> IdentityKey | None:
    """Return the key that signs at a time, or None."""
    usable = [it for it in published(keys, now) if it.begins <= now]
    return max(usable, key=lambda it: it.begins, default=None)


def published(keys: IdentityKeys, now: float) -> IdentityKeys:
    """Return the keys that are in the directory at a time: those that have not expired."""
    return [it for it in keys if it.ends is None or now < it.ends]


def rotated(keys: IdentityKeys, now: float, after_days: float, keep_days: float) -> IdentityKeys:
    """Return the keys without expired ones and with a new one, which signs in ``after_days``.

    The others expire ``keep_days`` after that.
    """
    begins = int(now + after_days * DAY_S)
    ends = int(begins + keep_days * DAY_S)
    old = [replace(it, ends=min(it.ends or ends, ends)) for it in published(keys, now)]
    return [*old, replace(new_key(now), begins=begins)]


def directory(keys: IdentityKeys, now: float) -> bytes:
    """Return the file to publish at a time."""
    return _as_json([it.as_jwk() for it in published(keys, now)])


# -- the file --------------------------------------------------------------------------


def read_keys(path: Path) -> IdentityKeys:
    """Read the keys of a file.

    Raises:
        CrawlError: the file is missing, readable by others, or not a key file.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(1 << 20)
    except FileNotFoundError as error:
        raise CrawlError(f"{path}: there is no key; `freshet key new` makes one") from error
    except OSError as error:
        raise CrawlError(trouble(path, error)) from error
    if mode & 0o077:
        raise CrawlError(f"{path}: others may read this key ({mode:04o}); `chmod 600 {path}`")
    try:
        return sorted(_read(json.loads(text)), key=lambda it: it.begins)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CrawlError(
            f"{path}: it is not of `freshet key new` ({_why(error)}); restore it, or make another"
        ) from error


def write_new(path: Path, keys: IdentityKeys) -> None:
    """Write the first keys, in a file that its owner alone may read.

    Raises:
        CrawlError: there is a file already, or it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, keys)
    except FileExistsError as error:
        words = "there is a key already; `freshet key rotate` makes its successor"
        raise CrawlError(f"{path}: {words}") from error
    except OSError as error:
        raise CrawlError(trouble(path, error)) from error


def write_again(path: Path, keys: IdentityKeys) -> None:
    """Put keys in the place of others; raises CrawlError."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _write(new, keys)
        new.replace(path)
    except OSError as error:
        raise CrawlError(trouble(path, error)) from error
    finally:
        new.unlink(missing_ok=True)


def _write(path: Path, keys: IdentityKeys) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        jwks = [it.as_jwk() | {"d": _encoded(it.private.private_bytes_raw())} for it in keys]
        file.write(_as_json(jwks))
        file.flush()
        os.fsync(file.fileno())


def _read(said: Any) -> Iterator[IdentityKey]:
    if not said["keys"]:
        raise ValueError("it has no key")
    for each in said["keys"]:
        octets = urlsafe_b64decode(f"{each['d']}=")
        if (each["kty"], each["crv"], len(octets)) != ("OKP", "Ed25519", _OCTETS):
            raise ValueError("a key is not Ed25519")
        ends = each.get("exp")
        key = IdentityKey(
            Ed25519PrivateKey.from_private_bytes(octets),
            int(each["nbf"]),
            None if ends is None else int(ends),
        )
        if key.public != each["x"]:
            raise ValueError("a public key is not that of its private key")
        yield key


def _why(error: Exception) -> str:
    return f"no {error}" if isinstance(error, KeyError) else f"{error}"


def _as_json(keys: Sequence[Mapping[str, Any]]) -> bytes:
    return json.dumps({"keys": keys}, separators=(",", ":")).encode()


def _encoded(octets: bytes) -> str:
    return urlsafe_b64encode(octets).rstrip(b"=").decode()
