"""A SuperLink and SuperNodes as processes on 127.0.0.1, with certificates of their own."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BIN = Path(sys.executable).parent
ADDRESS = "127.0.0.1"

#: The time that anything may take before a test gives up. On an idle machine everything takes far less; a
#: busy machine is no failure.
PATIENCE = 1800.0


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """A new authority and a certificate of it for 127.0.0.1: (authority, certificate, key), valid for a
    day."""
    now = datetime.datetime.now(datetime.timezone.utc)

    def certificate(name: str, key, issuer: str, issuer_key, extension, critical: bool) -> x509.Certificate:
        names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, who)]) for who in (name, issuer)]
        builder = (
            x509.CertificateBuilder()
            .subject_name(names[0])
            .issuer_name(names[1])
            .public_key(key.public_key())
        )
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(hours=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1)).add_extension(extension, critical)
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
        ).add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
        return builder.sign(issuer_key, hashes.SHA256())

    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = certificate(
        "test authority",
        authority_key,
        "test authority",
        authority_key,
        x509.BasicConstraints(True, None),
        True,
    )
    here = x509.SubjectAlternativeName(
        [x509.IPAddress(ipaddress.ip_address(ADDRESS)), x509.DNSName("localhost")]
    )
    server = certificate("superlink", key, "test authority", authority_key, here, False)
    paths = tuple(folder / name for name in ("authority.pem", "server.pem", "server.key"))
    pem = serialization.Encoding.PEM
    private = (serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
    for path, content in zip(
        paths, (authority.public_bytes(pem), server.public_bytes(pem), key.private_bytes(pem, *private))
    ):
        path.write_bytes(content)
        path.chmod(0o600)
    return paths


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]


def wait_for(what: str, condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {patience:.0f} s")
        time.sleep(0.1)


class Process:
    """A process with a group of its own, so that all it starts ends with it."""

    def __init__(self, name: str, command: list, environment: dict, folder: Path) -> None:
        self.name, self.log_path = name, folder / f"{name}.log"
        with self.log_path.open("w") as out:
            self.popen = subprocess.Popen(
                [str(part) for part in command],
                env=environment,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def wait_for_log(self, text: str) -> None:
        def logged() -> bool:
            if self.popen.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.popen.returncode}:\n{self.log[-4000:]}")
            return text in self.log

        wait_for(f"{text!r} in the log of {self.name}", logged)

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, number)

    def end(self) -> None:
        self.signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(10)
        self.signal(signal.SIGKILL)
        self.popen.wait(10)


def offline() -> dict[str, str]:
    """The environment of Flower's programs. A connection to anything but this machine would fail at a port
    without a listener."""
    nowhere = f"http://{ADDRESS}:{free_port()}"
    proxies = ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "no_proxy")
    return {name: value for name, value in os.environ.items() if name not in proxies} | {
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "NO_PROXY": f"{ADDRESS},localhost",
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "RAYON_NUM_THREADS": "1",
        # Workers are to get their share of a busy machine; Ray's default is 15.
        "RAY_worker_niceness": "0",
    }


class Federation:
    """A SuperLink with nodes 0, 1, …; all of them end when the block does."""

    def __init__(self, folder: Path, nodes: int, *options: str, **environment: str) -> None:
        self.folder = folder
        self.authority, certificate, key = certificates(folder)
        self.port = free_port()
        self.environment = offline() | environment
        command = [
            BIN / "flower-superlink",
            "--ssl-ca-certfile",
            self.authority,
            "--ssl-certfile",
            certificate,
        ]
        command += ["--ssl-keyfile", key, "--disable-runtime-dependency-installation"]
        command += ["--host", ADDRESS, "--port", self.port, *options]
        self.processes: list[Process] = []
        self.nodes: list[Process] = []
        try:
            self.superlink = self._start("superlink", command)
            wait_for("the SuperLink's port", self._is_open)
            for number in range(nodes):
                self.nodes.append(self._start_node(number))
            for node in self.nodes:
                node.wait_for_log("SuperNode ID:")
        except BaseException:
            self.end()
            raise

    def _is_open(self) -> bool:
        if self.superlink.popen.poll() is not None:
            raise RuntimeError(f"the SuperLink ended:\n{self.superlink.log[-4000:]}")
        with socket.socket() as probe:
            return probe.connect_ex((ADDRESS, self.port)) == 0

    def _start(self, name: str, command: list) -> Process:
        home = self.folder / f"home-{name}"
        home.mkdir()
        process = Process(name, command, self.environment | {"FLWR_HOME": str(home)}, self.folder)
        self.processes.append(process)
        return process

    def _start_node(self, number: int) -> Process:
        command = [BIN / "flower-supernode", "--root-certificates", self.authority]
        command += ["--superlink", f"{ADDRESS}:{self.port}", "--host", ADDRESS, "--port", free_port()]
        return self._start(f"node-{number}", [*command, "--node-config", f"partition-id={number}"])

    def run(self, app: Path, name: str, *options: str, **config: int | float | str) -> Process:
        """Starts the app in `app`; it is over when the process is."""
        home = self.folder / f"home-{name}"
        home.mkdir()
        (home / "config.toml").write_text(
            f'[superlink.test]\naddress = "{ADDRESS}:{self.port}"\nroot-certificates = "{self.authority}"\n'
        )
        settings = " ".join(f"{key.replace('_', '-')}={_toml(value)}" for key, value in config.items())
        command = [str(BIN / "flwr"), "run", str(app), "test", "--stream", "--run-config", settings, *options]
        process = Process(name, command, self.environment | {"FLWR_HOME": str(home)}, self.folder)
        self.processes.append(process)
        return process

    def result(self, process: Process, out: Path) -> dict:
        """The results of the run in `out`, once it is over."""
        try:
            wait_for("the end of the run", lambda: process.popen.poll() is not None)
            # The stream of its log may end a moment before the app does.
            wait_for("the result", (out / "result.json").exists, 60)
        except TimeoutError as error:
            raise TimeoutError(f"the run left no result\n{self.logs()}") from error
        return json.loads((out / "result.json").read_text())

    def end(self) -> None:
        for process in reversed(self.processes):
            process.end()

    def logs(self) -> str:
        """The last lines of all logs, for a test that failed."""
        return "\n".join(f"== {process.name}\n{process.log[-3000:]}" for process in self.processes)


def _toml(value: int | float | str) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
