"""Handles the requests of connections: bytes in, endpoint and handler, bytes out."""
