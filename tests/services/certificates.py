"""Certificates for loopback, good for an hour."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def make(folder: Path) -> None:
    """A CA, a server's and a client's certificate; and a stranger's, which the CA did not sign."""
    ca_key, ca_name = ec.generate_private_key(ec.SECP256R1()), _name("test CA")
    _write(folder, "ca", _signed(ca_name, ca_key, ca_name, ca_key, ca=True), ca_key)
    for who in ("server", "client"):
        key = ec.generate_private_key(ec.SECP256R1())
        _write(folder, who, _signed(_name(who), key, ca_name, ca_key, ca=False), key)
    key = ec.generate_private_key(ec.SECP256R1())
    _write(folder, "stranger", _signed(_name("stranger"), key, _name("stranger"), key, ca=False), key)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    ca: bool,
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    loopback = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(loopback), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


def _write(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
