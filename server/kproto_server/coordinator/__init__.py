"""The group coordinator: groups, their offsets, and what may be done with both. Pure: no sockets, files or clock."""
