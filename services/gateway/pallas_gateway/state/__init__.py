"""The databases of the gateway: an SQLite file for one, PostgreSQL and Valkey for replicas."""
