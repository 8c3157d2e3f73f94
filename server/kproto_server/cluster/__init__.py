"""The simulated cluster: brokers that come and go, and the topics that they carry. Pure: no sockets, no clock."""
