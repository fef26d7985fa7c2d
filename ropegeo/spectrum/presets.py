"""Named spectra of public models, and the one reader of what a user may write for `--rope`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ropegeo.errors import InvalidInputError
from ropegeo.spectrum.config_file import config_path
from ropegeo.spectrum.hf_config import spectrum_from_config
from ropegeo.spectrum.layout import check_layout
from ropegeo.spectrum.rope import RopeSpectrum


def _model(model_type: str, hidden: int, heads: int, **keys: Any) -> Mapping[str, Any]:
    return MappingProxyType({"model_type": model_type, "hidden_size": hidden, "num_attention_heads": heads, **keys})


def _llama3(factor: int) -> Mapping[str, Any]:
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1,
        "high_freq_factor": 4,
        "original_max_position_embeddings": 8192,
    }


# Each row holds the RoPE keys of the config.json published under the hub name in its comment.
_PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "gpt-j-6b": _model("gptj", 4096, 16, rotary_dim=64),  # EleutherAI/gpt-j-6b
        "gpt-neox-20b": _model(
            "gpt_neox", 6144, 64, rotary_pct=0.25, rotary_emb_base=10_000
        ),  # EleutherAI/gpt-neox-20b
        "llama-2-7b": _model("llama", 4096, 32),  # meta-llama/Llama-2-7b-hf; its base is the class default 10000
        "llama-3-8b": _model("llama", 4096, 32, rope_theta=500_000),  # meta-llama/Meta-Llama-3-8B
        "llama-3.1-8b": _model(
            "llama", 4096, 32, rope_theta=500_000, rope_scaling=_llama3(8)
        ),  # meta-llama/Llama-3.1-8B
        "llama-3.2-1b": _model(  # meta-llama/Llama-3.2-1B
            "llama", 2048, 32, head_dim=64, rope_theta=500_000, rope_scaling=_llama3(32)
        ),
        "mistral-7b": _model("mistral", 4096, 32, rope_theta=10_000),  # mistralai/Mistral-7B-v0.1
        "mistral-7b-v0.3": _model("mistral", 4096, 32, rope_theta=1_000_000),  # mistralai/Mistral-7B-v0.3
        "mixtral-8x7b": _model("mixtral", 4096, 32, rope_theta=1_000_000),  # mistralai/Mixtral-8x7B-v0.1
        # The paper (arXiv 2605.31558) trains GPT-J blocks; this is its base and one head of width 128.
        "paper": _model("gptj", 128, 1, rotary_dim=128),
        "phi-2": _model("phi", 2560, 32, rope_theta=10_000, partial_rotary_factor=0.4),  # microsoft/phi-2
        "pythia-1b": _model("gpt_neox", 2048, 8, rotary_pct=0.25, rotary_emb_base=10_000),  # EleutherAI/pythia-1b
        "pythia-410m": _model("gpt_neox", 1024, 16, rotary_pct=0.25, rotary_emb_base=10_000),  # EleutherAI/pythia-410m
        "qwen2.5-7b": _model("qwen2", 3584, 28, rope_theta=1_000_000),  # Qwen/Qwen2.5-7B
        "qwen3-0.6b": _model("qwen3", 1024, 16, head_dim=128, rope_theta=1_000_000),  # Qwen/Qwen3-0.6B
        "smollm2-135m": _model("llama", 576, 9, rope_theta=100_000),  # HuggingFaceTB/SmolLM2-135M
    }
)


def preset_names() -> tuple[str, ...]:
    """Names that `preset` knows, in alphabetical order."""
    return tuple(sorted(_PRESETS))


def preset(name: str) -> RopeSpectrum:
    """The spectrum of a public model by its short name.

    Args:
        name: one of `preset_names()`.

    Raises:
        InvalidInputError: any other name; the message lists the names and the nearest one.

    Example:
        >>> preset("llama-2-7b").source
        'preset llama-2-7b'
    """
    if name not in _PRESETS:
        raise InvalidInputError(f"preset {name[:60]!r} is unknown; {_hint(name)}")
    return replace(spectrum_from_config(_PRESETS[name]), source=f"preset {name}")


def load_rope(text: str, *, layer_type: str | None = None, layout: str | None = None) -> RopeSpectrum:
    """The spectrum that a user named: a preset, or a path to a `config.json` or the folder that holds it.

    A preset's name wins over a file of the same name; write `./NAME` for the file.

    Args:
        text: the preset or path.
        layer_type: as in `spectrum_from_config`; presets have none.
        layout: as in `spectrum_from_config`; of a preset it rewrites the layout.

    Raises:
        InvalidInputError: `text` is neither, or `layer_type` is given for a preset.
        FileFormatError: the file is not a configuration that can be read.
        UnsupportedError: the configuration asks for something this version does not know.
    """
    if text in _PRESETS:
        if layer_type is not None:
            raise InvalidInputError(f"preset {text}: all its layers turn alike; leave layer_type {layer_type!r} out")
        return preset(text) if layout is None else preset(text).with_layout(check_layout(layout))
    try:
        path = config_path(text)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"rope {text[:200]!r} is neither a preset nor the path of a config.json (or of a folder that holds one); "
            f"{_hint(text)}"
        ) from error
    return spectrum_from_config(path, layer_type=layer_type, layout=layout)


def _hint(name: str) -> str:
    near = difflib.get_close_matches(name[:60].lower(), _PRESETS, n=1)
    return (f"did you mean {near[0]}? " if near else "") + f"presets: {', '.join(preset_names())}"
