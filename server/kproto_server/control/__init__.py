"""The control API: what a test reads and changes in a running broker, over HTTP, for tests in any language.

Theory of operation. `operations` is a table of routes. Each row names a function or a method of `BrokerControls`;
arguments, their types and their checks, and the description in OpenAPI, come from its signature and its docstring. So
Python and HTTP have one definition.

The server is a trio task beside the broker's listeners; only the accept loop (`listening`) is imported with it, the
rest at the first connection. An operation runs in a worker thread and reaches the broker's state as any other thread
does, between two requests: a wait, or a response of ten thousand requests, delays no client.
"""
