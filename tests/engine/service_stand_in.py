"""A small real server for the tests: HTTP as OpenAI-compatible servers answer it, of the standard library alone.

`python service_stand_in.py PORT [--slots N] [--prefill S] [--token S] [--fault KIND] ...`. It answers at most `--slots`
requests at once, the others wait their turn; the first token comes after `--prefill`, each further one after `--token`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import ClassVar


class Stamping(socket.socket):
    """A listener whose connections note when data arrived at the machine: this process may be late to read it."""

    arrived_ns: ClassVar[dict[object, int]] = {}  # of a peer's last data

    def accept(self) -> tuple[socket.socket, object]:
        descriptor, peer = self._accept()  # type: ignore[attr-defined]
        connection = Stamping(fileno=descriptor)
        connection.peer = peer
        return connection, peer

    peer: object = None

    def recv(self, size: int, flags: int = 0) -> bytes:
        data, messages, _, _ = self.recvmsg(size, 64, flags)
        waited_ns = 0  # of the first ones nothing is known
        if messages:
            seconds, ns = struct.unpack("@ll", messages[0][2])
            waited_ns = time.time_ns() - seconds * 1_000_000_000 - ns
        self.arrived_ns[self.peer] = time.monotonic_ns() - waited_ns
        return data


class Server:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.slots = asyncio.Semaphore(arguments.slots)
        self.rng = random.Random(1)
        self.answered = 0
        self.stalled = False
        self.first_ns: dict[asyncio.StreamWriter, int] = {}
        self.truth = open(arguments.truth, "w", encoding="ascii", buffering=1) if arguments.truth else None  # noqa: SIM115

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")).strip():
                lines = head.decode("latin-1").split("\r\n")
                method, path, _ = lines[0].split(" ", 2)
                headers = {
                    name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                await self.answer(method, path, body, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    async def answer(self, method: str, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        fault = self.arguments.fault
        if fault == "hang":
            await asyncio.sleep(3600)
        if method == "GET":
            plain(writer, 503 if fault == "unwell" else 200, b"ok")
            return
        if fault == "refuse":
            plain(writer, 503, b'{"error": "busy"}')
            return
        if fault == "garbage":
            plain(writer, 200, b"\x00\xff not what you asked for")
            return
        if fault == "die" and self.answered >= 5:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "stall" and self.answered >= 30 and not self.stalled:
            self.stalled = True
            time.sleep(1.0)  # all of it: nobody is answered meanwhile
        received_ns = time.monotonic_ns()
        asked = json.loads(body)
        tokens = int(asked["max_tokens"])
        async with self.slots:
            await asyncio.sleep(self.arguments.prefill)
            if not asked.get("stream"):
                await asyncio.sleep(self.arguments.token * (tokens - 1))
                answer = {
                    "choices": [{"text": "x " * tokens, "finish_reason": "length"}],
                    "usage": {"prompt_tokens": len(asked["prompt"].split()), "completion_tokens": tokens},
                }
                plain(writer, 200, json.dumps(answer).encode())
            else:
                await self.stream(writer, asked, tokens)
        self.answered += 1
        if self.truth is not None:
            await writer.drain()
            arrived_ns = Stamping.arrived_ns[writer.get_extra_info("peername")]
            self.truth.write(f"{arrived_ns} {received_ns} {self.first_ns.pop(writer, 0)} {time.monotonic_ns()}\n")

    async def stream(self, writer: asyncio.StreamWriter, asked: dict[str, object], tokens: int) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for index in range(tokens):
            if index:
                await asyncio.sleep(self.arguments.token * self.rng.uniform(0.9, 1.1))
            chunk(writer, {"choices": [{"text": " x", "finish_reason": "length" if index == tokens - 1 else None}]})
            await writer.drain()
            if not index:
                self.first_ns[writer] = time.monotonic_ns()
        prompt = str(asked.get("prompt", asked.get("messages")))
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": tokens}
        chunk(writer, {"choices": [], "usage": usage})
        chunk(writer, None)
        writer.write(b"0\r\n\r\n")


def chunk(writer: asyncio.StreamWriter, event: dict[str, object] | None) -> None:
    data = b"data: " + (b"[DONE]" if event is None else json.dumps(event).encode()) + b"\n\n"
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def plain(writer: asyncio.StreamWriter, status: int, body: bytes) -> None:
    writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--prefill", type=float, default=0.005)
    parser.add_argument("--token", type=float, default=0.001)
    parser.add_argument("--fault", default="")
    parser.add_argument("--log", default="")
    parser.add_argument(
        "--truth", default="", help="a file for the times of each request: arrived, read, first, ended, in ns"
    )
    parser.add_argument("--child", action="store_true", help="leave a child behind that ignores SIGTERM")
    arguments = parser.parse_args()
    if arguments.log:
        with open(arguments.log, "a", encoding="utf-8") as log:
            log.write(f"{os.getpid()} {' '.join(sys.argv[1:])}\n")
    if arguments.child:
        code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-I", "-S", "-c", code])
        with open(arguments.log, "a", encoding="utf-8") as log:
            log.write(f"{child.pid} child\n")
    if arguments.fault == "exit":
        sys.exit("no such model")
    if arguments.fault == "slow":
        await asyncio.sleep(3600)
    kind = Stamping if arguments.truth else socket.socket
    listener = kind(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, so that asyncio sets TCP_NODELAY
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if arguments.truth:
        listener.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS, which connections inherit
    listener.bind(("127.0.0.1", arguments.port))
    server = await asyncio.start_server(Server(arguments).serve, sock=listener)
    if arguments.fault == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("ready to serve", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
