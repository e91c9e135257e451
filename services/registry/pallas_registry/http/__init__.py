"""The routes of the registry over HTTP."""
