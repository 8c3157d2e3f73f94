"""The code generator: from a construct tree to Python source, equal to the interpreted codec and 30 times faster.

Theory of operation. The generator walks the tree that `kproto.interpret.construct_of` builds for one message in one
version and emits one function for each direction; nested structs and arrays are inlined. Four things make the functions
fast:

- Neighboring fixed-size fields, and the length of the string or array after them, are read or written by one ``struct``
  call. The emitters collect such fields in ``pending`` and emit the call when a variable-size field ends the run.
- An array of fixed-size elements is one ``iter_unpack``.
- An array whose elements contain a string is read in bulk if all strings are empty, or all equal: a few counts over the
  bytes prove it (`kproto.runtime.UniformArray`), then ``iter_unpack`` reads the fields. Otherwise a loop reads them.
- Values are tuples: creating one costs about as much as the ``struct`` result that it is made of.

A generated function only distinguishes success from failure; the interpreted codec names the error (`kproto.runtime`).

The modules, lowest first; each imports only those before it:

- ``tree``: what the generator needs to know of a construct node (struct code, size).
- ``constants``: the structs, classes and defaults that the functions of a generated module share.
- ``emitter``: lines, indentation, temporaries and ``pending`` of one function.
- ``rows``: array elements that can be read in bulk.
- ``decode``, ``encode``: emit the body of one function.
- ``module``: puts functions and constants together; ``shipping``: all modules, for the wheel.

To read a generated function (in a checkout)::

    print(inspect.getsource(message_codec(OffsetCommitRequest, 3).decode))
"""

from __future__ import annotations

from kproto.generate.module import Module

__all__ = ["Module"]
