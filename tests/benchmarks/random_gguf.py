"""A small language model with random weights as a GGUF file, for a server of llama.cpp's to serve.

    python tests/benchmarks/random_gguf.py FILE [LAYERS] [WIDTH]

Needs the package gguf. It is a Llama of 8 layers, 512 wide (27 million weights), with a vocabulary of words that mean
nothing: each token becomes text of its own, and the token that would end an answer is never the likeliest, so that an
answer is as long as was asked for (at temperature 0).
"""

from __future__ import annotations

import sys
from pathlib import Path

import gguf
import numpy as np

WORDS = 1000
HEADS = 8
CONTEXT = 4096


def write_model(path: Path, layers: int = 8, width: int = 512) -> int:
    """Write the model; how many weights it has."""
    rng = np.random.default_rng(1)
    inner = 2 * width
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(width // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    kinds = gguf.TokenType
    named = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    bytes_ = [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
    words = [(f"\u2581w{at}", kinds.NORMAL) for at in range(WORDS)]
    tokens = [*named, *bytes_, *words]
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_scores([0.0 if kind is not kinds.NORMAL else -float(at) for at, (_, kind) in enumerate(tokens)])
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    count = 0

    def add(name: str, *shape: int) -> None:
        nonlocal count
        weights = (
            rng.standard_normal(shape, dtype=np.float32) / np.sqrt(shape[-1]) if len(shape) > 1 else np.ones(shape)
        )
        if name == "output.weight":
            weights[: len(named) + len(bytes_)] = 0.0  # never the likeliest
        writer.add_tensor(name, weights.astype(np.float32))
        count += weights.size

    add("token_embd.weight", len(tokens), width)
    for layer in range(layers):
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{part}.weight", width, width)
        add(f"blk.{layer}.attn_norm.weight", width)
        add(f"blk.{layer}.ffn_norm.weight", width)
        for part in ("ffn_gate", "ffn_up"):
            add(f"blk.{layer}.{part}.weight", inner, width)
        add(f"blk.{layer}.ffn_down.weight", width, inner)
    add("output_norm.weight", width)
    add("output.weight", len(tokens), width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return count


def main() -> None:
    path = Path(sys.argv[1])
    layers, width = (int(text) for text in (sys.argv[2:4] or ("8", "512")))
    print(f"{path}: {write_model(path, layers, width) / 1e6:.0f} million weights")


if __name__ == "__main__":
    main()
