"""The routes of an agent over HTTP, and how large a body may be."""
