"""Which servers are believed by TLS: those that this machine trusts, and the authorities in the file SSL_CERT_FILE."""

from __future__ import annotations

import ssl

_UNKNOWN_ISSUERS = {2, 18, 19, 20, 21}
"""X509_V_ERR_* of OpenSSL for a chain that ends in nobody who is known here."""


def context() -> ssl.SSLContext:
    """Return what a server's certificate and name are held to; the files are read anew each time."""
    return ssl.create_default_context()


def distrust(error: BaseException | None) -> str:
    """Return why a server was not believed, and what to do; empty where something else is behind `error`."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            why = f"has a certificate that is not trusted: {error.verify_message.rstrip('.')}"
            cure = ": have SSL_CERT_FILE name the file of an authority of your own"
            return f"{why}{cure if error.verify_code in _UNKNOWN_ISSUERS else ''}"
        if isinstance(error, ssl.SSLError):
            return f"does not speak TLS as it should: {error.reason or error}"
        error = error.__cause__ or error.__context__
    return ""
