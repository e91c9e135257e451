"""The issuer of the tokens that are checked here."""

from tests.issuer import issuer

__all__ = ["issuer"]
