"""The routes of an agent over HTTP: limits of bodies and sessions, long streams, cached health."""
