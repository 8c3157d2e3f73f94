"""The table of committed offsets, packed: see `table`."""
