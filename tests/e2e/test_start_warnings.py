"""A daemon that is likely secured by mistake says so when it starts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.certificates import Certificates
from tests.support.daemon import Daemon

NAME = "clients will not accept the certificate under the advertised name"
NO_USERS = "nobody can log in: there are no users"
NO_AUTHORIZER = "every one of them may do everything: there is no authorizer"
NO_SUPER_USER = "nobody may make an ACL: there is an authorizer, and no super user"
DEPRECATED = "a deprecated setting is set"
ALL = (NAME, NO_USERS, NO_AUTHORIZER, NO_SUPER_USER, DEPRECATED)
ACL = ("--authorizer", "acl")
SUPER = ("--super-users", "User:admin")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def add_user(data: Path) -> None:
    command = [sys.executable, "-m", "ringleader", "users", "add", "admin", "--data-dir", str(data)]
    subprocess.run(command, input=b"a password\n", check=True)


@pytest.mark.parametrize(
    ("listener", "user", "options", "warnings"),
    [
        pytest.param("", False, (), set(), id="plaintext on loopback"),
        pytest.param("", False, ("--generation-block", "64"), {DEPRECATED}, id="deprecated setting"),
        pytest.param("SASL_SSL", True, (*ACL, *SUPER), set(), id="secured"),
        pytest.param("SASL_SSL", False, (*ACL, *SUPER), {NO_USERS}, id="no user"),
        pytest.param("SASL_SSL", True, (), {NO_AUTHORIZER}, id="no authorizer"),
        pytest.param("SASL_SSL", True, ACL, {NO_SUPER_USER}, id="no super user"),
        pytest.param("SASL_PLAINTEXT", False, ACL, {NO_USERS, NO_SUPER_USER}, id="two of them"),
        pytest.param("SSL", False, (), set(), id="tls alone"),
        pytest.param(
            "SSL", False, ("--ssl-client-auth", "required"), {NO_AUTHORIZER}, id="certificates of clients"
        ),
        pytest.param(
            "SSL",
            False,
            ("--ssl-client-auth", "required", "--ssl-enabled-protocols", "TLSv1.2"),
            {NO_AUTHORIZER},
            id="certificates of clients in TLS 1.2",
        ),
        pytest.param(
            "SASL_SSL",
            True,
            (*ACL, *SUPER, "--advertised-listeners", "SASL_SSL://broker.elsewhere:9093"),
            {NAME},
            id="another name",
        ),
        pytest.param(
            "SSL", False, ("--advertised-listeners", "SSL://10.1.2.3:9093"), {NAME}, id="another address"
        ),
    ],
)
def test_a_start_warns(
    certificates: Certificates,
    tmp_path: Path,
    listener: str,
    user: bool,
    options: tuple[str, ...],
    warnings: set[str],
) -> None:
    if user:
        add_user(tmp_path / "data")
    files = (
        ("--ssl-keystore-location", certificates.server, "--ssl-truststore-location", certificates.authority)
        if "SSL" in listener
        else ()
    )
    with Daemon(tmp_path, listener=listener, options=[*map(str, files), *options]) as daemon:
        log = daemon.log()
    assert {one for one in ALL if one in log} == warnings
    assert log.count("warning") == len(warnings)
    if NAME in warnings:
        assert "broker.elsewhere" in log or "10.1.2.3" in log
        assert "mismatch" in log
