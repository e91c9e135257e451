"""One SQLite file: pieces of documents with their vectors and words, and entities with their relations."""
