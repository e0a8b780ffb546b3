"""Where the server listens, and the names by which it may be called; known before anything else is loaded."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket

from chainrule.errors import ConfigError, Setting


def bound(host: str, port: int) -> socket.socket:
    """A socket at this address, which is refused while it is taken; it accepts nothing before the server runs."""
    # Named as TCP: asyncio then sends small packets at once, which a client would otherwise wait 40 ms for.
    try:
        found = socket.socket(address_family(host, port), socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:  # a kind of address that this machine does not have
        raise no_address(host, error) from None
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise no_address(host, error) from None
        rule = "choose another --port, or --port 0 for any"
        raise ConfigError(f"serve: {host} port {port}: {error.strerror} ({rule})") from None
    return found


def address_family(host: str, port: int) -> socket.AddressFamily:
    """The kind of address that a host has; one without an address is refused."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except (OSError, UnicodeError) as error:
        raise no_address(host, error) from None


def no_address(host: str, error: Exception) -> ConfigError:
    """The error for a host that this machine cannot listen at."""
    why = getattr(error, "strerror", None) or error
    rule = "must be an address or a name of this machine, such as 127.0.0.1"
    return ConfigError("serve: ", Setting("host"), f" is {host!r}: {why} ({rule})")


def is_local(host: str) -> bool:
    """Only programs of this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_host(name: str) -> None:
    """Refuse what no client can send as the name of a host."""
    if not re.fullmatch(r"[\w-]+(\.[\w-]+)*", name, re.ASCII):
        rule = "must be a name alone, such as models.example: no scheme, no port, no path"
        raise ConfigError("serve: ", Setting("allow_host"), f" is {name[:100]!r} ({rule})")
