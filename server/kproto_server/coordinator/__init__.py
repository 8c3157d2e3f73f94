"""The group coordinator: groups, their offsets, and the decisions about both. Pure: no sockets, files or clock."""
