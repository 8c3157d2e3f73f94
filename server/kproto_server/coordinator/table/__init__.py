"""The table of committed offsets, packed into few bytes each: `table` has the theory of operation."""
