"""A small OpenAI-compatible server on plain PyTorch: a transformer with random weights, from a configuration.

    python tests/benchmarks/torch_server.py PORT [--size 3b] [--slots 64] [--stream-every 4] [--check]

For measuring, not for use: it says nothing that means anything, and each answer is as long as was asked for. What it
has of a real server: an engine in a process of its own, so that HTTP never makes a step wait; continuous batching over
slots with a static KV cache; at most one prompt read between two steps of decoding; CUDA graphs for both (one for each
power of two of slots, and of tokens of a prompt), so that a step costs the host next to nothing; streaming. What it has
not: a tokeniser (a token for each word of the prompt), paged attention (every step reads the cache of each slot up to
--context), chunked prefill, sampling, or kernels other than PyTorch's. Needs torch and aiohttp. On a processor it runs
in float32 without graphs. `--check` compares a step of decoding with a prefill of the same tokens, and ends.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import multiprocessing
import signal
import sys
import time
import zlib
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import torch
from aiohttp import web
from torch.nn import functional

Tensor = torch.Tensor
Said = tuple[int, list[int], bool]  # a request's number, more tokens of its answer, and whether these are the last
SHORTEST = 16  # tokens of a prompt: shorter ones are filled up


@dataclass(frozen=True)
class Size:
    layers: int
    width: int
    heads: int
    groups: int  # heads of keys and values
    inner: int
    words: int = 32000

    @property
    def each(self) -> int:
        """The width of one head."""
        return self.width // self.heads


SIZES = {
    "toy": Size(2, 64, 4, 2, 128, 500),
    "1b": Size(24, 2048, 16, 8, 5632),
    "3b": Size(28, 3072, 24, 8, 8192),
}


class Model:
    """A Llama of random weights with a cache of `slots` times `context` tokens."""

    def __init__(self, size: Size, slots: int, context: int, device: str) -> None:
        self.size, self.slots, self.context, self.device = size, slots, context, device
        self.type = torch.bfloat16 if device == "cuda" else torch.float32
        torch.backends.cuda.enable_cudnn_sdp(False)  # makes plans, in the midst of what a graph captures
        torch.manual_seed(1)
        w, kv = size.width, size.groups * size.each
        self.embedding, self.head = self._weights(size.words, w), self._weights(size.words, w)
        self.layers = [
            {
                "qkv": self._weights(w + 2 * kv, w),
                "out": self._weights(w, w),
                "up": self._weights(2 * size.inner, w),
                "down": self._weights(w, size.inner),
            }
            for _ in range(size.layers)
        ]
        shape = (size.layers, slots, size.groups, context, size.each)
        self.keys, self.values = (torch.zeros(shape, dtype=self.type, device=device) for _ in range(2))
        self.tokens = torch.zeros(slots, dtype=torch.long, device=device)  # the last of each slot
        self.at = torch.zeros(slots, dtype=torch.long, device=device)  # its place in the context
        angles = torch.outer(
            torch.arange(context, device=device).float(),
            10000.0 ** (-torch.arange(0, size.each, 2, device=device).float() / size.each),
        )
        self.cos, self.sin = angles.cos(), angles.sin()
        self.places = torch.arange(context, device=device)
        self.prompt = torch.zeros(context, dtype=torch.long, device=device)  # what is read next,
        self.length = torch.ones(1, dtype=torch.long, device=device)  # its tokens,
        self.slot = torch.zeros(1, dtype=torch.long, device=device)  # and where it goes
        self.steps: dict[int, Callable[[], None]] = {}
        self.reads: dict[int, Callable[[], None]] = {}

    @property
    def weights(self) -> int:
        return sum(each.numel() for layer in self.layers for each in layer.values()) + 2 * self.embedding.numel()

    def _weights(self, *shape: int) -> Tensor:
        made = torch.empty(shape, dtype=self.type, device=self.device)
        return made.normal_(std=shape[-1] ** -0.5)

    def _turned(self, x: Tensor, at: Tensor) -> Tensor:
        """Rotary positions; x of shape (..., heads, each), `at` that of x without the last two."""
        cos, sin = self.cos[at].unsqueeze(-2), self.sin[at].unsqueeze(-2)
        left, right = x.float().chunk(2, dim=-1)
        return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1).to(self.type)

    def _norm(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, (self.size.width,))

    def _parts(self, layer: dict[str, Tensor], x: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        s = self.size
        kv = s.groups * s.each
        q, k, v = (self._norm(x) @ layer["qkv"].T).split((s.width, kv, kv), dim=-1)
        q, k, v = (part.unflatten(-1, (-1, s.each)) for part in (q, k, v))
        return self._turned(q, at), self._turned(k, at), v

    def _fed(self, layer: dict[str, Tensor], x: Tensor) -> Tensor:
        gate, up = (self._norm(x) @ layer["up"].T).chunk(2, dim=-1)
        return x + (functional.silu(gate) * up) @ layer["down"].T

    def read(self, tokens: int) -> Tensor:
        """Fill the slot's cache with the prompt, which is no longer than that; the logits of what follows, (1, words).

        What is behind the prompt's end is hidden from every step until it is written over.
        """
        s, at = self.size, self.places[:tokens]
        x = self.embedding[self.prompt[:tokens]]
        for number, layer in enumerate(self.layers):
            q, k, v = self._parts(layer, x, at)
            self.keys[number, :, :, :tokens].index_copy_(0, self.slot, k.transpose(0, 1).unsqueeze(0))
            self.values[number, :, :, :tokens].index_copy_(0, self.slot, v.transpose(0, 1).unsqueeze(0))
            k, v = (part.repeat_interleave(s.heads // s.groups, dim=1) for part in (k, v))
            seen = functional.scaled_dot_product_attention(
                *(part.transpose(0, 1).unsqueeze(0) for part in (q, k, v)), is_causal=True
            )
            x = x + seen[0].transpose(0, 1).flatten(1) @ layer["out"].T
            x = self._fed(layer, x)
        return self._norm(x[self.length - 1]) @ self.head.T

    def put(self, slot: int, prompt: list[int]) -> int:
        """Make a prompt the one that is read next; the tokens it is filled up to."""
        self.prompt[: len(prompt)] = torch.tensor(prompt, device=self.device)
        self.slot.fill_(slot)
        self.length.fill_(len(prompt))
        return min(each for each in _powers(SHORTEST, self.context) if each >= len(prompt))

    def decode(self, slots: int) -> Tensor:
        """One more token for the first slots; the logits, shape (slots, words)."""
        s, at = self.size, self.at[:slots]
        rows = torch.arange(slots, device=self.device)
        hidden = (self.places[None] > at[:, None])[:, None, None]
        x = self.embedding[self.tokens[:slots]]
        for number, layer in enumerate(self.layers):
            q, k, v = self._parts(layer, x, at)
            keys, values = self.keys[number, :slots], self.values[number, :slots]
            keys[rows, :, at], values[rows, :, at] = k, v
            q = q.unflatten(1, (s.groups, -1))
            scores = (q @ keys.transpose(-1, -2)).float() * s.each**-0.5
            seen = scores.masked_fill(hidden, -torch.inf).softmax(-1).to(self.type) @ values
            x = x + seen.flatten(1) @ layer["out"].T
            x = self._fed(layer, x)
        return self._norm(x) @ self.head.T

    def _step(self, slots: int) -> None:
        self.tokens[:slots] = self.decode(slots).argmax(-1)
        self.at[:slots] = (self.at[:slots] + 1).clamp(max=self.context - 1)

    def _read(self, tokens: int) -> None:
        self.tokens.index_copy_(0, self.slot, self.read(tokens).argmax(-1))
        self.at.index_copy_(0, self.slot, self.length)

    def prepare(self) -> None:
        """Make the steps of every number of slots and the reading of every length: graphs on a GPU."""
        self.steps = {slots: self._made(self._step, slots) for slots in _powers(1, self.slots)}
        self.reads = {tokens: self._made(self._read, tokens) for tokens in _powers(SHORTEST, self.context)}
        self.at.zero_()

    def _made(self, work: Callable[[int], None], count: int) -> Callable[[], None]:
        if self.device != "cuda":
            return lambda: work(count)
        beside = torch.cuda.Stream()
        with torch.cuda.stream(beside):
            for _ in range(2):
                work(count)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work(count)
        replay: Callable[[], None] = graph.replay
        return replay

    def step(self, slots: int) -> list[int]:
        """A token more for at least so many slots, as the host hears of them."""
        count = min(each for each in self.steps if each >= slots)
        self.steps[count]()
        return list(self.tokens[:slots].tolist())

    def prefill(self, slot: int, prompt: list[int]) -> int:
        """Fill a slot's cache with a prompt; the first token of the answer."""
        self.reads[self.put(slot, prompt)]()
        return int(self.tokens[slot])


def _powers(first: int, last: int) -> list[int]:
    """Powers of two times `first`, below `last`, and that."""
    found = [first << power for power in range(last.bit_length()) if first << power < last]
    return [*found, last]


@dataclass
class Job:
    """One request in a slot."""

    number: int
    prompt: list[int]
    wanted: int
    made: int = 0
    unsaid: list[int] = field(default_factory=list)


class Engine:
    """Decodes for all who are in a slot, and lets at most one in between two steps.

    It hears `Job`s and the numbers of those whose client has left, and says a list of `Said` after a step. It ends with
    its connection.
    """

    def __init__(self, model: Model, every: int, http: Connection) -> None:
        self.model, self.every, self.http = model, every, http
        self.waiting: deque[Job] = deque()
        self.busy: dict[int, Job] = {}
        self.said: list[Said] = []

    def run(self) -> None:
        while self._hear(wait=not self.busy and not self.waiting):
            if self.waiting and len(self.busy) < self.model.slots:
                self._let_in(self.waiting.popleft())
            if self.busy:
                made = self.model.step(max(self.busy) + 1)
                for slot in list(self.busy):
                    self._give(slot, made[slot])
            if self.said:
                self.http.send(self.said)
                self.said = []

    def _hear(self, *, wait: bool) -> bool:
        """Take what has come; False once nobody is there any more."""
        try:
            while self.http.poll(None if wait else 0):
                heard, wait = self.http.recv(), False
                if isinstance(heard, Job):
                    self.waiting.append(heard)
                else:
                    self.waiting = deque(job for job in self.waiting if job.number != heard)
                    self.busy = {slot: job for slot, job in self.busy.items() if job.number != heard}
        except (EOFError, ConnectionError):
            return False
        return True

    def _let_in(self, job: Job) -> None:
        slot = next(slot for slot in range(self.model.slots) if slot not in self.busy)
        self.busy[slot] = job
        self._give(slot, self.model.prefill(slot, job.prompt))

    def _give(self, slot: int, token: int) -> None:
        job = self.busy[slot]
        job.made += 1
        job.unsaid.append(token)
        last = job.made >= job.wanted
        if last or job.made == 1 or len(job.unsaid) >= self.every:
            self.said.append((job.number, job.unsaid, last))
            job.unsaid = []
        if last:
            del self.busy[slot]


@torch.inference_mode()
def serve(http: Connection, name: str, slots: int, context: int, every: int) -> None:
    """The engine's process, from the model's making to the end of the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: HTTP's process ends this one
    torch.set_num_threads(1)  # more would wait for each other on a busy processor
    begun = time.monotonic()
    model = Model(SIZES[name], slots, context, _device())
    model.prepare()
    took_s = time.monotonic() - begun
    _leave_to_itself()
    try:
        http.send(f"{model.weights / 1e9:.2f} billion weights on {model.device} after {took_s:.1f} s")
        Engine(model, every, http).run()
    except ConnectionError:  # HTTP's process was killed
        pass


class Api:
    """OpenAI's completions over HTTP."""

    def __init__(self, engine: Connection, size: Size, context: int) -> None:
        self.engine, self.size, self.context = engine, size, context
        self.asked = 0  # requests until now
        self.listening: dict[int, asyncio.Queue[Said]] = {}

    async def hear(self, _: web.Application) -> None:
        asyncio.get_running_loop().add_reader(self.engine.fileno(), self._hear)

    def _hear(self) -> None:
        try:
            while self.engine.poll():
                for said in self.engine.recv():
                    if said[0] in self.listening:
                        self.listening[said[0]].put_nowait(said)
        except (EOFError, ConnectionError):
            raise web.GracefulExit from None  # the engine has ended

    def application(self) -> web.Application:
        made = web.Application()
        made.on_startup.append(self.hear)
        made.router.add_get("/health", self.health)
        made.router.add_get("/v1/models", self.models)
        made.router.add_post("/v1/completions", self.complete)
        return made

    async def health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "random", "object": "model"}]})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        prompt = [zlib.crc32(word.encode()) % self.size.words for word in str(asked["prompt"]).split()] or [0]
        wanted = int(asked.get("max_tokens", 16))
        if not 0 < wanted < self.context:
            return web.json_response({"error": {"message": "max_tokens"}}, status=400)
        prompt = prompt[: self.context - wanted]
        usage = {"prompt_tokens": len(prompt), "completion_tokens": wanted, "total_tokens": len(prompt) + wanted}
        self.asked += 1
        number = self.asked
        said = self.listening[number] = asyncio.Queue()
        self.engine.send(Job(number, prompt, wanted))
        last = False
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        try:
            if not asked.get("stream"):
                text = ""
                while not last:
                    _, tokens, last = await said.get()
                    text += _text(tokens)
                return web.json_response({"choices": [_choice(text, last=True)], "usage": usage})
            await answer.prepare(request)
            while not last:
                _, tokens, last = await said.get()
                await answer.write(_event({"choices": [_choice(_text(tokens), last=last)]}))
            await answer.write(_event({"choices": [], "usage": usage}) + b"data: [DONE]\n\n")
            return answer
        except ConnectionError:  # the client has left
            return answer
        finally:
            del self.listening[number]
            if not last:
                with suppress(ConnectionError):  # the engine has ended
                    self.engine.send(number)


def _text(tokens: list[int]) -> str:
    return "".join(f" w{token}" for token in tokens)


def _choice(text: str, *, last: bool) -> dict[str, Any]:
    return {"index": 0, "text": text, "finish_reason": "length" if last else None}


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"


@torch.inference_mode()
def check(model: Model) -> float:
    """How far a step of decoding is from a prefill of the same tokens, relative; other slots have other answers."""
    prompts = [[(7 * at + 31 * slot) % model.size.words for at in range(9 + slot)] for slot in range(3)]
    model.prepare()
    for slot, prompt in enumerate(prompts):
        model.prefill(slot, prompt[:-1])
        model.tokens[slot], model.at[slot] = prompt[-1], len(prompt) - 1
    decoded = model.decode(3).float()
    wanted = torch.cat([model.read(model.put(3, prompt)) for prompt in prompts]).float()
    return float((decoded - wanted).norm() / wanted.norm())


def _leave_to_itself() -> None:
    """What importing torch has made is not gone through again: each time takes 100 ms, in the midst of requests."""
    gc.collect()
    gc.freeze()


def _device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--size", choices=SIZES, default="3b")
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--stream-every", type=int, default=4, help="tokens in one piece of a stream, after the first")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    size = SIZES[arguments.size]
    if arguments.check:
        with torch.inference_mode():
            model = Model(size, arguments.slots, arguments.context, _device())
            print(f"decoding differs from prefill by {check(model):.2g}")
        return
    spawning = multiprocessing.get_context("spawn")
    ours, its = spawning.Pipe()
    engine = spawning.Process(
        target=serve,
        args=(its, arguments.size, arguments.slots, arguments.context, arguments.stream_every),
        daemon=True,
    )
    engine.start()
    its.close()
    print(ours.recv(), flush=True)
    _leave_to_itself()
    api = Api(ours, size, arguments.context).application()
    web.run_app(api, host="127.0.0.1", port=arguments.port, print=None, access_log=None, shutdown_timeout=1.0)
    ours.close()
    engine.join(10)
    sys.exit(engine.exitcode)


if __name__ == "__main__":
    main()
