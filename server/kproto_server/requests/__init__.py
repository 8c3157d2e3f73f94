"""What a handler receives with a request, and what an API in a version consists of."""
