"""Quotas in effect: a client that exceeds the quota of its group is throttled.

`endpoints` puts quotas before the handlers of requests, `throttles` records what clients use and computes throttle
times, `responses` delays the client, and `connections` delays or closes new connections above a rate.
"""
