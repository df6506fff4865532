"""An sshd of the test's own on loopback, with keys and a port of its own, and an `ssh` on the PATH that knows it."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from app.engine.children.python import python_environment

SSHD = shutil.which("sshd", path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"]))
WHY_NOT = "" if SSHD and shutil.which("ssh") and shutil.which("ssh-keygen") else "there is no OpenSSH server here"


class Sshd:
    """Serves this user until `close`. `environment` is what a command there sees beside its own."""

    def __init__(self, folder: Path, *, installed: bool = True, environment: dict[str, str] | None = None) -> None:
        assert SSHD is not None
        folder.chmod(0o700)
        keygen, ssh = shutil.which("ssh-keygen"), shutil.which("ssh")
        assert keygen is not None
        for name in ("host", "user", "stranger"):
            subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
        shutil.copy(folder / "user.pub", folder / "authorized")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        public = (folder / "host.pub").read_text().split()[:2]
        (folder / "known").write_text(f"[127.0.0.1]:{self.port} {' '.join(public)}\n")
        programs = folder / "programs"
        programs.mkdir()
        if installed:
            told = {**python_environment(), **(environment or {})}
            wanted = ("PYTHONPATH", "WATTRIDGE_DATA", *(environment or {}))
            exports = "".join(f"export {name}={shlex.quote(told[name])}\n" for name in wanted if name in told)
            script = f'#!/bin/sh\n{exports}exec {shlex.quote(sys.executable)} -P -m app "$@"\n'
            (programs / "wattridge").write_text(script)
            (programs / "wattridge").chmod(0o755)
        (folder / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {folder / 'host'}\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {folder / 'authorized'}\nStrictModes no\nPasswordAuthentication no\n"
            f"KbdInteractiveAuthentication no\nSetEnv PATH={programs}:/usr/bin:/bin\nLogLevel ERROR\n"
        )
        (folder / "config").write_text(
            f"Host box\n  HostName 127.0.0.1\n  Port {self.port}\n  User {getpass.getuser()}\n"
            f"  IdentityFile {folder / 'user'}\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder / 'known'}\n"
            "  StrictHostKeyChecking yes\n"
        )
        self.client = folder / "client"
        self.client.mkdir()
        (self.client / "ssh").write_text(f'#!/bin/sh\nexec {ssh} -F {folder / "config"} "$@"\n')
        (self.client / "ssh").chmod(0o755)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # sshd wants it of root
        self.errors = (folder / "errors").open("wb")
        self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=self.errors)
        until = time.monotonic() + 30.0
        while True:
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            assert self.process.poll() is None, (folder / "errors").read_text()
            assert time.monotonic() < until
            time.sleep(0.05)

    def cut(self) -> None:
        """Break every connection, as a machine does that goes down: its sessions' processes are killed."""
        found = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False)
        for child in found.stdout.split():
            subprocess.run(["pkill", "-KILL", "-P", child], check=False)
            subprocess.run(["kill", "-KILL", child], check=False)

    def close(self) -> None:
        self.cut()
        self.process.terminate()
        self.process.wait(10.0)
        self.errors.close()
