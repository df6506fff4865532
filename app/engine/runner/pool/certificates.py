"""The certificates of a pool: its own authority, and one certificate with its key for whoever takes part.

The authority's key is not kept: nobody can make another certificate for the pool, and whoever is to leave it is left
out by making new ones. A certificate says 'of this pool', not who: all of its holders may do the same.
"""

from __future__ import annotations

import datetime
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ....errors import InputError, WattridgeError
from ....own_installation import how_to_add
from ....paths import PRIVATE_FILE, make_folder, private_folder

_AUTHORITY, _CERTIFICATE, _KEY = "ca.pem", "pool.pem", "pool-key.pem"
_VALID: Final = datetime.timedelta(days=825)
_SKEW: Final = datetime.timedelta(hours=1)  # of the clocks of the pool's machines


@dataclass(frozen=True, slots=True)
class Certificates:
    """Where the three files of a pool are, on every machine of it the same ones."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / _AUTHORITY

    @property
    def certificate(self) -> Path:
        return self.folder / _CERTIFICATE

    @property
    def key(self) -> Path:
        return self.folder / _KEY

    @property
    def files(self) -> tuple[Path, ...]:
        return self.authority, self.certificate, self.key


def default_folder() -> Path:
    """Where the certificates of a user's pool are looked for. Raises WattridgeError."""
    return private_folder("pool")


def find_certificates(folder: Path | None = None) -> Certificates:
    """The certificates in a folder. Raises InputError where they are not there, or others can read the key."""
    found = Certificates(folder if folder is not None else default_folder())
    missing = [path.name for path in found.files if not path.is_file()]
    if missing:
        remedy = "make them with `wattridge pool certificates`, and copy them to all machines of the pool"
        raise InputError(f"{', '.join(missing)} of a pool's certificates is missing", str(found.folder), remedy)
    if os.name == "posix":
        status = os.stat(found.key)
        if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InputError("others can read the key of the pool", str(found.key), f"chmod 600 {found.key}")
        if status.st_uid != os.getuid():
            raise InputError("the key of the pool belongs to someone else", str(found.key), "copy it with your account")
    return found


def make_certificates(folder: Path | None = None) -> Certificates:
    """A new authority and the certificate of a new pool. Raises InputError where there are some, and WattridgeError."""
    made = Certificates(folder if folder is not None else default_folder())
    present = [path for path in made.files if os.path.lexists(path)]
    if present:
        remedy = "remove them first, or name another folder: the machines that have the old ones leave the pool"
        raise InputError("there is a pool's certificate already", str(present[0]), remedy)
    authority, certificate, key = _signed()
    try:
        make_folder(made.folder)
        for path, content in zip(made.files, (authority, certificate, key), strict=True):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
    except OSError as error:
        raise WattridgeError(error.strerror or str(error), str(made.folder), "name another folder") from None
    return made


def _signed() -> tuple[bytes, bytes, bytes]:
    """An authority's certificate, the pool's and its key, as PEM: keys on P-256, signed with SHA-256."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError:
        raise WattridgeError("certificates need the package cryptography", "pool", how_to_add("pool")) from None
    now = datetime.datetime.now(datetime.UTC)

    def name(common: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])

    def usage(*, signs_certificates: bool) -> x509.KeyUsage:
        return x509.KeyUsage(
            digital_signature=not signs_certificates,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=signs_certificates,
            crl_sign=signs_certificates,
            encipher_only=False,
            decipher_only=False,
        )

    signing, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    begun = (
        x509.CertificateBuilder().issuer_name(name("Wattridge pool authority")).not_valid_before(now - _SKEW)
    ).not_valid_after(now + _VALID)
    identifier = x509.SubjectKeyIdentifier.from_public_key(signing.public_key())
    authority = (
        begun.subject_name(name("Wattridge pool authority"))
        .serial_number(x509.random_serial_number())
        .public_key(signing.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(signing, hashes.SHA256())
    )
    certificate = (
        begun.subject_name(name("Wattridge pool"))
        .serial_number(x509.random_serial_number())
        .public_key(own.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(signing, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return authority.public_bytes(pem), certificate.public_bytes(pem), private
