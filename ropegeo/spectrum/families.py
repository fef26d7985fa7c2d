"""Facts about model families: how each `model_type` of Hugging Face lays out and parametrises its RoPE.

Every row states what the class of that name does when a configuration leaves a key out, read from the
configuration and modeling files of transformers 5.24.0; `tests/test_hf_config_models.py` holds the table against
that library, layout included. A family that is not here is refused by name rather than guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ropegeo.spectrum.layout import Layout


@dataclass(frozen=True, kw_only=True)
class LayerDefault:
    """RoPE of one layer type in a family whose layer types turn differently.

    Attributes:
        base: class default of the base.
        base_key: top-level name that older files give it; None if no name is read.
        scaled: whether a top-level `rope_scaling` applies to it.
    """

    base: int
    base_key: str | None
    scaled: bool


@dataclass(frozen=True, kw_only=True)
class Family:
    """What a configuration of one `model_type` means where it is silent.

    Attributes:
        layout: which coordinates of a head turn together.
        base: class default of the base; None where the file must state it.
        base_keys: top-level names of the base that are read, first one found wins.
        fraction: class default of the rotated fraction; None if the class always rotates the whole head.
        fraction_keys: top-level names of the rotated fraction that are read.
        rotary_dim: class default of a rotated width that is stated itself; such a class has a fixed base and no
            rope dictionary.
        rotary_dim_gives_fraction: a top-level `rotary_dim` stands for the fraction rotary_dim / head_dim.
        head_dim: class default where the key is absent; None means hidden size over heads.
        head_dim_stated: whether a `head_dim` in the file counts; if not, it is always hidden size over heads.
        head_dim_key: name of the width; latent attention rotates a sub-head of its own, `qk_rope_head_dim`.
        hidden_keys: names of the hidden size.
        heads_keys: names of the number of query heads.
        rope: class default of the whole rope dictionary, for classes whose default is a scaled rope.
        layers: per layer type, for families whose layer types turn differently.
        interleave_key: boolean key that says whether the layout is interleaved.
        rotating_layers: which layers rotate, if not all of them; for labels.
    """

    layout: Layout = "half"
    base: int | None = 10_000
    base_keys: tuple[str, ...] = ("rope_theta",)
    fraction: float | None = None
    fraction_keys: tuple[str, ...] = ("partial_rotary_factor",)
    rotary_dim: int | None = None
    rotary_dim_gives_fraction: bool = False
    head_dim: int | None = None
    head_dim_stated: bool = True
    head_dim_key: str = "head_dim"
    hidden_keys: tuple[str, ...] = ("hidden_size",)
    heads_keys: tuple[str, ...] = ("num_attention_heads",)
    rope: Mapping[str, str | int | float] | None = None
    layers: Mapping[str, LayerDefault] | None = None
    interleave_key: str | None = None
    rotating_layers: str = ""


def _by_layer(**layers: LayerDefault) -> Mapping[str, LayerDefault]:
    return MappingProxyType(layers)


def _rope(rope_type: str, **keys: float) -> Mapping[str, str | int | float]:
    return MappingProxyType({"rope_type": rope_type, **keys})


_PLAIN = Family()
_WIDE = Family(head_dim=128)
_GEMMA = Family(head_dim=256)
_HALF_OF_HEAD = Family(fraction=0.5, head_dim_stated=False)
_GPTJ = Family(
    layout="interleaved",
    base_keys=(),
    rotary_dim=64,
    head_dim_stated=False,
    hidden_keys=("n_embd", "hidden_size"),
    heads_keys=("n_head", "num_attention_heads"),
)
_GEMMA3 = Family(
    head_dim=256,
    layers=_by_layer(
        full_attention=LayerDefault(base=1_000_000, base_key="rope_theta", scaled=True),
        sliding_attention=LayerDefault(base=10_000, base_key="rope_local_base_freq", scaled=False),
    ),
)
_OLMO3 = Family(
    base=500_000,
    layers=_by_layer(
        full_attention=LayerDefault(base=500_000, base_key="rope_theta", scaled=True),
        # The class takes `rope_theta` for the full layers and then no longer finds it for the others.
        sliding_attention=LayerDefault(base=500_000, base_key=None, scaled=False),
    ),
)
_QWEN2_VL = Family(base=1_000_000)
_QWEN3_VL = Family(base=500_000, head_dim=128)
_QWEN3_HYBRID = Family(
    fraction=0.25, head_dim=256, rotating_layers="full-attention layers; the others are linear attention"
)
_GLM = Family(layout="interleaved", fraction=0.5, head_dim=128)
_LLAMA4 = Family(
    layout="interleaved", base=500_000, head_dim=128, rotating_layers="all layers but those of no_rope_layers"
)
_MLA = Family(layout="interleaved", head_dim=64, head_dim_key="qk_rope_head_dim")

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "afmoe": Family(head_dim=128, rotating_layers="sliding-attention layers"),
        "apertus": Family(
            base=12_000_000,
            rope=_rope(
                "llama3",
                rope_theta=12_000_000,
                factor=8,
                original_max_position_embeddings=8192,
                low_freq_factor=1,
                high_freq_factor=4,
            ),
        ),
        "arcee": _PLAIN,
        "bitnet": Family(base=500_000),
        "codegen": _GPTJ,
        "cohere": Family(layout="interleaved", base=500_000),
        "cohere2": Family(layout="interleaved", head_dim_stated=False, rotating_layers="sliding-attention layers"),
        "deepseek_v2": _MLA,
        "deepseek_v3": Family(
            layout="interleaved", head_dim=64, head_dim_key="qk_rope_head_dim", interleave_key="rope_interleave"
        ),
        "diffllama": _PLAIN,
        "dots1": _PLAIN,
        "ernie4_5": Family(layout="interleaved", base=500_000, head_dim=128),
        "ernie4_5_moe": Family(layout="interleaved", base=500_000),
        "exaone4": Family(rotating_layers="sliding-attention layers where there are any, else all"),
        "falcon": Family(head_dim_stated=False),
        "falcon_h1": _PLAIN,
        "flex_olmo": Family(base=500_000),
        "gemma": _GEMMA,
        "gemma2": _GEMMA,
        "gemma3": _GEMMA3,
        "gemma3_text": _GEMMA3,
        "glm": _GLM,
        "glm4": _GLM,
        "glm4_moe": Family(fraction=0.5),
        "gpt_neox": Family(
            base_keys=("rotary_emb_base",), fraction=0.25, fraction_keys=("rotary_pct",), head_dim_stated=False
        ),
        "gpt_oss": Family(
            base=150_000,
            head_dim=64,
            rope=_rope("yarn", factor=32, original_max_position_embeddings=4096),
        ),
        "gptj": _GPTJ,
        "granite": _PLAIN,
        "granitemoe": _PLAIN,
        "granitemoeshared": _PLAIN,
        "helium": Family(layout="interleaved", base=100_000, head_dim=128),
        "hunyuan_v1_dense": _PLAIN,
        "hunyuan_v1_moe": _PLAIN,
        "jais2": _PLAIN,
        "lfm2": Family(base=1_000_000, rotating_layers="full-attention layers; the others are convolutions"),
        "llama": _PLAIN,
        "llama4": _LLAMA4,
        "llama4_text": _LLAMA4,
        "minimax": Family(base=1_000_000, rotating_layers="full-attention layers; the others are linear attention"),
        "minimax_m2": Family(base=5_000_000, head_dim=128, fraction=1.0, rotary_dim_gives_fraction=True),
        "ministral": _PLAIN,
        "mistral": _PLAIN,
        "mixtral": Family(base=1_000_000),
        "mllama": Family(base=500_000, head_dim_stated=False),
        "mllama_text_model": Family(base=500_000, head_dim_stated=False),
        "nemotron": Family(fraction=0.5),
        "olmo": _PLAIN,
        "olmo2": _PLAIN,
        "olmo3": _OLMO3,
        "olmoe": _PLAIN,
        "persimmon": _HALF_OF_HEAD,
        "phi": Family(fraction=0.5),
        "phi3": Family(fraction=1.0),
        "phimoe": Family(base=1_000_000),
        "qwen2": _PLAIN,
        "qwen2_5_vl": _QWEN2_VL,
        "qwen2_5_vl_text": _QWEN2_VL,
        "qwen2_moe": _PLAIN,
        "qwen2_vl": _QWEN2_VL,
        "qwen2_vl_text": _QWEN2_VL,
        "qwen3": _WIDE,
        "qwen3_5": _QWEN3_HYBRID,
        "qwen3_5_moe": _QWEN3_HYBRID,
        "qwen3_5_moe_text": _QWEN3_HYBRID,
        "qwen3_5_text": _QWEN3_HYBRID,
        "qwen3_moe": _PLAIN,
        "qwen3_next": _QWEN3_HYBRID,
        "qwen3_vl": _QWEN3_VL,
        "qwen3_vl_moe": Family(base=500_000),
        "qwen3_vl_moe_text": Family(base=500_000),
        "qwen3_vl_text": _QWEN3_VL,
        "seed_oss": _WIDE,
        "smollm3": Family(base=2_000_000, rotating_layers="all layers but those of no_rope_layers"),
        "stablelm": Family(fraction=0.25, head_dim_stated=False),
        "starcoder2": _PLAIN,
        "vaultgemma": _GEMMA,
    }
)
"""Known families by `model_type`; a multimodal name and the name of its text part are both listed."""

UNSTATED = Family(
    base=None,
    base_keys=("rope_theta", "rotary_emb_base"),
    fraction=1.0,
    fraction_keys=("partial_rotary_factor", "rotary_pct"),
    rotary_dim_gives_fraction=True,
)
"""A model whose family is not known but whose layout the caller states: the base must be in the file."""

WITHOUT_ROPE: Mapping[str, str] = MappingProxyType(
    {
        "bert": "it learns absolute positions",
        "bloom": "it uses ALiBi",
        "gpt2": "it learns absolute positions",
        "jamba": "its attention layers use no positions",
        "mamba": "it has no attention",
        "mamba2": "it has no attention",
        "mpt": "it uses ALiBi",
        "nemotron_h": "its attention layers use no positions, whatever rope_theta says",
        "opt": "it learns absolute positions",
    }
)
"""Families that do not rotate queries and keys, and what they do instead."""
