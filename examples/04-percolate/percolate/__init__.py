"""Percolate's memory: a knowledge base and a graph of entities for each tenant, served over MCP."""
