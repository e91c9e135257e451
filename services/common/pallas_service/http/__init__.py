"""Serving HTTP: sockets, limits of the protocol, callers that hang up, the end of the process."""
