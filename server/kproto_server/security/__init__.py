"""Secured listeners: the certificates of TLS, the files that have them, and the settings that clients need."""
