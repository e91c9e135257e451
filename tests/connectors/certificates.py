"""An authority of a test's own, and what it signs: for servers that speak TLS."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority whose certificate is in `file`, beside those that it signs."""

    file: Path
    key: ec.EllipticCurvePrivateKey
    name: x509.Name

    def signed(self, *addresses: str, days: int = 1) -> Path:
        """Return a file with a certificate for these addresses and its key; with `days` below 0 it has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address)) for address in addresses])
        made = _builder(_name(f"server {addresses}"), self.name, key, days).add_extension(names, critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        made = made.add_extension(issuer, critical=False)
        file = self.file.with_name(f"{self.file.stem}-{'-'.join(addresses)}-{days}.pem")
        certificate = made.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM)
        file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate)
        return file


def authority(folder: Path, name: str) -> Authority:
    """Return a new authority with its certificate in `folder`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name)
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    made = _builder(subject, subject, key, days=1).add_extension(constraints, critical=True)
    usage = dict.fromkeys(_USAGES, False) | {"key_cert_sign": True}
    made = made.add_extension(x509.KeyUsage(**usage), critical=True)
    made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    file = folder / f"{name}.pem"
    file.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    return Authority(file, key, subject)


def server_side(file: Path) -> ssl.SSLContext:
    """Return what a server speaks TLS with, by a file of `Authority.signed`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


_USAGES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    """Return a certificate that began two days ago, for the machine's clock may be behind, and ends in `days`."""
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=days))
    )
