"""Fault rules: what the broker does wrong on purpose, for tests of clients.

A rule has conditions and an action (`rule`); `rules` counts the requests that it acts on. `active_rules` applies the
rules of a broker: while there are any, it takes the place of the endpoints that they are about, so that a broker
without rules pays nothing. `actions` decides what happens to a request, as a function of it and of the broker's time;
`items` and `changes` put errors and other changes into responses, by the declarations of the messages.
"""
