"""What `wattridge doctor` finds on this machine, and what an assistant may do with its board 0: to be looked at.

    PYTHONPATH=. python tests/benchmarks/doctor_and_assistant.py [BOARD]

The server is started with `resources/examples`. On a real board the clocks of the specification must be left out, and
the notes say so. Takes a minute. Nothing is set.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from app.base.paths import resources
from app.engine.children.python import python_command, python_environment


def main(board: str) -> None:
    """Print both."""
    subprocess.run([*python_command("app"), "doctor"], env=python_environment(), check=False)
    folder = resources() / "examples"
    server = subprocess.Popen(
        [*python_command("app"), "mcp", "--folder", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=python_environment(),
    )
    assert server.stdin is not None
    assert server.stdout is not None

    def ask(number: int, method: str, **parameters: object) -> dict:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())

    ask(0, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "bench", "version": "1"})
    calls = [
        ("list_boards", {}),
        ("read_board", {"gpu": board, "seconds": 2}),
        ("start_session", {"specification": "gemm.toml", "gpu": board, "max_evaluations": 5, "max_seconds": 30}),
        ("session_progress", {"run": "1", "wait_seconds": 45}),
        ("list_sessions", {}),
    ]
    for number, (name, arguments) in enumerate(calls, 1):
        begun = time.monotonic()
        answer = ask(number, "tools/call", name=name, arguments=arguments)
        result = answer.get("result", {})
        said = json.dumps(result.get("structuredContent", answer.get("error")))
        how, seconds = "error" if result.get("isError") else "ok", time.monotonic() - begun
        print(f"{name:<18} {how:<6} {seconds:6.2f} s  {said[:400]}")
    server.stdin.close()
    print("ended with", server.wait(60))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "0")
