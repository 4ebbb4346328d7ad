"""FedAvg rounds in Flower's simulation (Ray): the same training work, no radio and no compression.

Starts a SuperLink on 127.0.0.1, runs the app beside this file on it, and stops it again. One client to a
thread (client-resources-num-cpus=1); local Adam starts anew in every round, as in Flower's own examples.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import workload as w

options = w.parser().parse_args()
w.limit_threads(1)
# On a signal to stop, stop the SuperLink too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
BIN = Path(sys.executable).parent


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process):
    for _ in range(3000):
        if process.poll() is not None:
            sys.exit(f"the SuperLink ended with code {process.returncode}")
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit("the SuperLink did not open its port within five minutes")


with tempfile.TemporaryDirectory() as home:
    port, result, log = free_port(), Path(home, "result.json"), Path(home, "superlink.log")
    Path(home, "config.toml").write_text(
        f'[superlink.local]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    )
    environment = os.environ | {
        "FLWR_HOME": home,
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # Ray's workers give way to everything else otherwise
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "PYTHONPATH": str(HERE.parent),
        "PEER_RESULT": str(result),
    }
    flags = ["--insecure", "--simulation", "--disable-runtime-dependency-installation"]
    link = [BIN / "flower-superlink", *flags]
    link += ["--host", "127.0.0.1", "--port", str(port)]
    with log.open("w") as out:
        # A process group of its own: the simulation that the SuperLink starts, and Ray, end with it.
        superlink = subprocess.Popen(link, env=environment, stdout=out, stderr=out, start_new_session=True)
    try:
        wait_for(port, superlink)
        federation = f"num-supernodes={w.M} client-resources-num-cpus=1 init-args-num-cpus={options.threads}"
        config = f"rounds={options.rounds} seed={options.seed} threads={options.threads}"
        command = [BIN / "flwr", "run", HERE / "app", "local", "--stream"]
        command += ["--federation-config", federation, "--run-config", config]
        subprocess.run(command, env=environment, stdout=sys.stderr, check=True)
        # The app's log may end a moment before the app has written its result.
        for _ in range(100):
            if result.exists():
                break
            time.sleep(0.1)
        if not result.exists():
            sys.exit(f"the app left no result; the SuperLink's log:\n{log.read_text()[-4000:]}")
        measured = json.loads(result.read_text())
    finally:
        os.killpg(superlink.pid, signal.SIGTERM)
        superlink.wait(60)
        time.sleep(5)
        with suppress(ProcessLookupError):
            os.killpg(superlink.pid, signal.SIGKILL)

versions = {name: version(name) for name in ("flwr", "ray", "torch")}
w.report("flower", versions, options, measured["seconds"], measured["accuracy"])
