"""A small OpenAI-compatible server on plain PyTorch: a transformer with random weights, from a configuration.

    python tests/benchmarks/torch_server.py PORT [--size 3b] [--slots 64] [--stream-every 4] [--check]

For measuring, not for use: it says nothing that means anything, and each answer is as long as was asked for. What it
has of a real server: continuous batching over slots with a static KV cache, prefill of one request between two steps,
decoding steps that are CUDA graphs (one for each power of two of slots), streaming. What it has not: a tokeniser (a
token for each word of the prompt), paged attention (every step reads the cache of each slot up to --context), chunked
prefill, sampling, or kernels other than PyTorch's. Needs torch and aiohttp. On a processor it runs in float32 without
graphs. `--check` compares a step of decoding with a prefill of the same tokens, and ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import queue
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from aiohttp import web
from torch.nn import functional

Tensor = torch.Tensor


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
        self.steps: dict[int, Callable[[], None]] = {}

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

    def prefill(self, slot: int, prompt: list[int]) -> Tensor:
        """Fill a slot's cache with a prompt; the logits of what follows, shape (words,)."""
        s, n = self.size, len(prompt)
        at = self.places[:n]
        x = self.embedding[torch.tensor(prompt, device=self.device)]
        for number, layer in enumerate(self.layers):
            q, k, v = self._parts(layer, x, at)
            self.keys[number, slot, :, :n] = k.transpose(0, 1)
            self.values[number, slot, :, :n] = v.transpose(0, 1)
            k, v = (part.repeat_interleave(s.heads // s.groups, dim=1) for part in (k, v))
            seen = functional.scaled_dot_product_attention(
                *(part.transpose(0, 1).unsqueeze(0) for part in (q, k, v)), is_causal=True
            )
            x = x + seen[0].transpose(0, 1).flatten(1) @ layer["out"].T
            x = self._fed(layer, x)
        return self._norm(x[-1]) @ self.head.T

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

    def prepare(self) -> None:
        """Make the steps of every number of slots: graphs on a GPU."""
        counts = [1 << power for power in range(self.slots.bit_length()) if 1 << power <= self.slots]
        for slots in sorted({*counts, self.slots}):
            if self.device != "cuda":
                self.steps[slots] = lambda slots=slots: self._step(slots)
                continue
            beside = torch.cuda.Stream()
            with torch.cuda.stream(beside):
                for _ in range(2):
                    self._step(slots)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._step(slots)
            self.steps[slots] = graph.replay
        self.at.zero_()

    def step(self, slots: int) -> list[int]:
        """A token more for at least so many slots, as the host hears of them."""
        count = min(each for each in self.steps if each >= slots)
        self.steps[count]()
        return list(self.tokens[:slots].tolist())


@dataclass
class Job:
    """One request in a slot."""

    prompt: list[int]
    wanted: int
    say: Callable[[list[int], bool], None]  # tokens, and whether these are the last
    slot: int = -1
    made: int = 0
    unsaid: list[int] = field(default_factory=list)
    gone: bool = False  # the client


class Engine(threading.Thread):
    """Decodes for all who are in a slot, and lets others in between two steps."""

    def __init__(self, model: Model, every: int) -> None:
        super().__init__(daemon=True)
        self.model, self.every = model, every
        self.waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.busy: dict[int, Job] = {}

    @torch.inference_mode()
    def run(self) -> None:
        while True:
            self._let_in(wait=not self.busy)
            made = self.model.step(max(self.busy) + 1)
            for slot, job in list(self.busy.items()):
                self._give(job, made[slot])

    def _let_in(self, *, wait: bool) -> None:
        model = self.model
        while len(self.busy) < model.slots:
            try:
                job = self.waiting.get(block=wait)
            except queue.Empty:
                return
            wait = False
            job.slot = next(slot for slot in range(model.slots) if slot not in self.busy)
            first = int(model.prefill(job.slot, job.prompt).argmax())
            model.tokens[job.slot], model.at[job.slot] = first, len(job.prompt)
            self.busy[job.slot] = job
            self._give(job, first)
            wait = not self.busy

    def _give(self, job: Job, token: int) -> None:
        job.made += 1
        job.unsaid.append(token)
        last = job.made >= job.wanted or job.gone
        if last or job.made == 1 or len(job.unsaid) >= self.every:
            job.say(job.unsaid, last)
            job.unsaid = []
        if last:
            del self.busy[job.slot]


class Api:
    """OpenAI's completions over HTTP."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def application(self) -> web.Application:
        made = web.Application()
        made.router.add_get("/health", self.health)
        made.router.add_get("/v1/models", self.models)
        made.router.add_post("/v1/completions", self.complete)
        return made

    async def health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "random", "object": "model"}]})

    async def complete(self, request: web.Request) -> web.StreamResponse:
        asked, model = await request.json(), self.engine.model
        prompt = [zlib.crc32(word.encode()) % model.size.words for word in str(asked["prompt"]).split()] or [0]
        wanted = int(asked.get("max_tokens", 16))
        if not 0 < wanted < model.context:
            return web.json_response({"error": {"message": "max_tokens"}}, status=400)
        prompt = prompt[: model.context - wanted]
        loop, said = asyncio.get_running_loop(), asyncio.Queue[tuple[list[int], bool]]()
        job = Job(prompt, wanted, lambda *words: loop.call_soon_threadsafe(said.put_nowait, words) and None)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": wanted, "total_tokens": len(prompt) + wanted}
        self.engine.waiting.put(job)
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        try:
            if not asked.get("stream"):
                text = "".join([_text(tokens) async for tokens, _ in _until_last(said)])
                return web.json_response({"choices": [_choice(text, last=True)], "usage": usage})
            await answer.prepare(request)
            async for tokens, last in _until_last(said):
                await answer.write(_event({"choices": [_choice(_text(tokens), last=last)]}))
            await answer.write(_event({"choices": [], "usage": usage}) + b"data: [DONE]\n\n")
            return answer
        except ConnectionError:  # the client has left
            return answer
        finally:
            job.gone = True


async def _until_last(said: asyncio.Queue[tuple[list[int], bool]]) -> Any:
    last = False
    while not last:
        tokens, last = await said.get()
        yield tokens, last


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
    wanted = torch.stack([model.prefill(3, prompt) for prompt in prompts]).float()
    return float((decoded - wanted).norm() / wanted.norm())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--size", choices=SIZES, default="3b")
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--stream-every", type=int, default=4, help="tokens in one piece of a stream, after the first")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    begun = time.monotonic()
    with torch.inference_mode():
        model = Model(SIZES[arguments.size], arguments.slots, arguments.context, device)
        if arguments.check:
            print(f"decoding differs from prefill by {check(model):.2g}")
            return
        model.prepare()
    engine = Engine(model, arguments.stream_every)
    engine.start()
    took_s = time.monotonic() - begun
    print(f"{model.weights / 1e9:.2f} billion weights on {device} after {took_s:.1f} s", flush=True)
    web.run_app(Api(engine).application(), host="127.0.0.1", port=arguments.port, print=None, access_log=None)


if __name__ == "__main__":
    main()
