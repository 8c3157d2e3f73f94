"""The connection of one client: bytes in, endpoint and handler, bytes out. `connection` has the theory of operation."""
