"""From a construct tree to Python source: the fast path, provably equal to the interpreted one.

Theory of operation. The generator walks the tree that `kproto.interpret.construct_of` makes and emits one straight
function per message, version and direction; nested structs and arrays are inlined. What makes it quick:

- Neighbouring fixed-size fields, and the length that follows them, are read or written by one ``struct`` call.
- An array of fixed-size elements is one ``iter_unpack``.
- An array whose elements have a string is first read as if it were the same in all of them: proven with a few counts
  over the bytes at a stride (`kproto.runtime.Alike`), then one ``iter_unpack`` too.
- Values are tuples, so that making one costs about as much as the ``struct`` result it is made of.

A generated function knows only right and wrong. What is wrong is told by the interpreted codec (`kproto.runtime`).
"""

from __future__ import annotations

from kproto.generate.module import Module

__all__ = ["Module"]
