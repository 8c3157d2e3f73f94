"""IP addresses in the form in which Java has them: brokers compare and show addresses in it."""

from __future__ import annotations

from ipaddress import IPv6Address


def host_address(host: str) -> str:
    """Return an IP address as Java's ``getHostAddress``: the eight groups of IPv6 in full, without leading zeros.

    An IPv4 address that is mapped to IPv6 is an IPv4 address, and a zone is left out. A text that is no IPv6 address is
    returned as it is.
    """
    try:
        address = IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.packed.hex(":", 2).split(":"))
