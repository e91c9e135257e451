"""The addresses of agents and services: from DNS, or from a fixed list."""
