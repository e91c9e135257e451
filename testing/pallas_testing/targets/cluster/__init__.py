"""The fleet in Kubernetes, and what can be done to its pods by somebody who may use one namespace."""
