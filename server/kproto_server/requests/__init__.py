"""The way of a request: from a frame to its response."""
