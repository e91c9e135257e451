"""Pieces of documents with their vectors and words, and entities with their relations, in SQLite or PostgreSQL."""
