"""The broker as users have it: `Broker`, and how its parts are put together."""
