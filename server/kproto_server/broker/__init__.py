"""The broker for users: `Broker`, its clock, groups and requests, and the assembly of its parts."""
