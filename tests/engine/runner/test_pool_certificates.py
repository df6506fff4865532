"""A pool's certificates: one authority each, keys for their owner alone, and addresses that mean TLS."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs the extra [pool]")
pytest.importorskip("cryptography", reason="needs the extra [pool]")

from app.base.errors import InputError
from app.engine.runner.pool.dask_pool import security_of
from app.engine.session.pool.opening import find_certificates, make_certificates, parse_pool_address


def test_certificates_are_made_for_their_owner_alone_and_found_again(own_data_folder: Path) -> None:
    before = os.umask(0)
    try:
        made = make_certificates()
    finally:
        os.umask(before)
    assert made.folder == own_data_folder / "pool"
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.files} == {
        "ca.pem": 0o600,
        "pool.pem": 0o600,
        "pool-key.pem": 0o600,
    }
    assert find_certificates() == made
    assert b"PRIVATE" not in made.authority.read_bytes() + made.certificate.read_bytes(), "the authority's key is gone"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    make_certificates(tmp_path / "pool")
    with pytest.raises(InputError, match="already"):
        make_certificates(tmp_path / "pool")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "pool-key.pem").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="already"):
        make_certificates(tmp_path / "other")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "pool")
    made.key.chmod(0o640)
    with pytest.raises(InputError, match="others can read") as error:
        find_certificates(made.folder)
    assert error.value.remedy == f"chmod 600 {made.key}"


def test_missing_certificates_are_named_with_how_to_make_them(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "pool")
    made.key.unlink()
    with pytest.raises(InputError, match=r"pool-key\.pem") as error:
        find_certificates(made.folder)
    assert "wattridge pool certificates" in error.value.remedy


def test_a_certificate_is_of_its_own_pool_only(tmp_path: Path) -> None:
    one, other = (make_certificates(tmp_path / name) for name in ("one", "other"))
    for folder, own in ((one, True), (other, False)):
        context = ssl.create_default_context(cafile=str(one.authority))
        context.check_hostname = False
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(folder.certificate, folder.key)
        there = server.wrap_bio(outgoing, incoming, server_side=True)
        here = context.wrap_bio(incoming, outgoing)
        refused = False
        for side in (here, there, here):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                refused = True
                break
        assert refused is not own


def test_every_role_needs_encryption_and_the_pools_own_authority(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "pool")
    security = security_of(made)
    assert security.require_encryption
    for role in ("client", "scheduler", "worker"):
        assert security.get_tls_config_for_role(role) == {
            "ca_file": str(made.authority),
            "cert": str(made.certificate),
            "key": str(made.key),
            "ciphers": None,
        } | {k: v for k, v in security.get_tls_config_for_role(role).items() if k.endswith("version")}
        context = security.get_connection_args(role)["ssl_context"]
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert security.get_listen_args(role)["ssl_context"].verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("node", "tls://node:8786"),
        ("node.lab:9", "tls://node.lab:9"),
        ("tls://10.0.0.1:8787", "tls://10.0.0.1:8787"),
        ("[::1]:8786", "tls://[::1]:8786"),
    ],
)
def test_an_address_means_tls(text: str, address: str) -> None:
    assert parse_pool_address(text) == address


@pytest.mark.parametrize("text", ["tcp://127.0.0.1:8786", "tcp://10.0.0.1", "ws://node:1", "inproc://x"])
def test_without_tls_nothing_is_reached_or_offered(text: str) -> None:
    with pytest.raises(InputError, match="TLS only"):
        parse_pool_address(text)


@pytest.mark.parametrize("text", ["", "-x", "node:99999", "node:1/2", "a b", "tls://", "node;rm", "$(x)"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_pool_address(text)
