"""The documents that say which agents there are: of the seed, of the official registry API, of Prometheus."""
