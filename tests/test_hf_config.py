"""Which spectrum a config.json describes, and what is refused.

Numbers come from the public cases of tests/CASES.md (numbers in comments) or from plain Python here.
"""

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ropegeo.errors import FileFormatError, InvalidInputError, RopegeoError, UnsupportedError
from ropegeo.spectrum import RopeSpectrum, spectrum_from_config
from ropegeo.spectrum.families import FAMILIES, WITHOUT_ROPE

Config = dict[str, Any]

WIDE: Config = {"model_type": "llama", "head_dim": 128}
SMALL: Config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4}
LLAMA3: Config = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
GEMMA3: Config = {"model_type": "gemma3_text", "hidden_size": 1152, "num_attention_heads": 4, "head_dim": 256}
GEMMA3_OLD: Config = GEMMA3 | {
    "rope_theta": 1_000_000,
    "rope_local_base_freq": 10_000,
    "rope_scaling": {"rope_type": "linear", "factor": 8.0},
}
GEMMA3_NEW: Config = GEMMA3 | {
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10_000},
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000},
    }
}


def plain(base: float, rotary_dim: int) -> np.ndarray:
    """The default frequencies in plain float64."""
    return np.array([base ** (-2 * plane / rotary_dim) for plane in range(rotary_dim // 2)])


def close(spectrum: RopeSpectrum, expected: np.ndarray) -> None:
    # One power of doubles is off by an ulp of its exponent's error, |log f| ulp at most: below 40 of them here.
    np.testing.assert_allclose(spectrum.inv_freq, expected, rtol=40 * np.finfo(float).eps)


@pytest.mark.parametrize(
    ("config", "head_dim", "rotary_dim", "first"),
    [
        # case 23: the three ways to write base 500000
        (WIDE | {"rope_parameters": {"rope_type": "default", "rope_theta": 500000}}, 128, 128, 0.8146172338565447),
        (WIDE | {"rope_theta": 500000, "rope_scaling": None}, 128, 128, 0.8146172338565447),
        (WIDE | {"rope_theta": 500000.0, "rope_scaling": {}}, 128, 128, 0.8146172338565447),
        # case 23: a dictionary of type default is no scaling, even with a factor beside it
        (
            WIDE | {"rope_theta": 500000, "rope_scaling": {"rope_type": "default", "factor": 4.0}},
            128,
            128,
            0.8146172338565447,
        ),
        # case 23: a non-empty rope_scaling replaces rope_parameters, rope_type beats type, inside beats outside
        (
            WIDE
            | {
                "rope_theta": 10000,
                "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 77},
                "rope_scaling": {"type": "yarn", "rope_type": "default", "rope_theta": 500000},
            },
            128,
            128,
            0.8146172338565447,
        ),
        # case 7: the fraction inside the dictionary beats the family default 0.25
        (
            {
                "model_type": "gpt_neox",
                "hidden_size": 512,
                "num_attention_heads": 8,
                "rope_parameters": {"rope_theta": 10000, "rope_type": "default", "partial_rotary_factor": 0.5},
            },
            64,
            32,
            0.5623413251903491,
        ),
        ({"model_type": "gpt_neox", "hidden_size": 512, "num_attention_heads": 8}, 64, 16, 0.31622776601683794),
        # case 5: exponents and pairs from the rotated width
        (
            {"model_type": "qwen3_next", "head_dim": 256, "rope_theta": 1e7, "partial_rotary_factor": 0.25},
            256,
            64,
            0.6042963902381329,
        ),
        # case 29: a stated head_dim beats hidden / heads; null means derive (here 160)
        (
            {
                "model_type": "mistral",
                "hidden_size": 5120,
                "num_attention_heads": 32,
                "head_dim": 128,
                "rope_theta": 1000000,
            },
            128,
            128,
            0.8058421877614819,
        ),
        (
            {
                "model_type": "mistral",
                "hidden_size": 5120,
                "num_attention_heads": 32,
                "head_dim": None,
                "rope_theta": 1000000,
            },
            160,
            160,
            0.8413951416,
        ),
        # case 27: class defaults of the base
        (WIDE, 128, 128, 0.8659643233600653),
        (WIDE | {"model_type": "mixtral"}, 128, 128, 0.8058421877614819),
        (WIDE | {"model_type": "cohere"}, 128, 128, 500000 ** (-1 / 64)),
        (
            WIDE | {"model_type": "gpt_oss", "rope_parameters": {"rope_type": "default"}},
            128,
            128,
            150000 ** (-1 / 64),
        ),
        # the class default of head_dim counts where the key is absent
        ({"model_type": "gemma", "hidden_size": 3072, "num_attention_heads": 16}, 256, 256, 10000 ** (-1 / 128)),
        ({"model_type": "gptj", "n_embd": 4096, "n_head": 16}, 256, 64, 10000 ** (-1 / 32)),
        ({"model_type": "minimax_m2", "rotary_dim": 64}, 128, 64, 5000000 ** (-1 / 32)),
        # latent attention: the rotating sub-head
        ({"model_type": "deepseek_v3", "qk_rope_head_dim": 32, "head_dim": 192}, 32, 32, 10000 ** (-1 / 16)),
        # multimodal sections leave text positions ordinary
        (
            WIDE | {"model_type": "qwen2_vl", "rope_scaling": {"rope_type": "default", "mrope_section": [16, 24, 24]}},
            128,
            128,
            0.8058421877614819,
        ),
        # nested text_config, with and without its own model_type
        ({"model_type": "qwen3_vl", "text_config": {"rope_theta": 10000}}, 128, 128, 0.8659643233600653),
        ({"model_type": "x", "text_config": WIDE}, 128, 128, 0.8659643233600653),
    ],
)
def test_second_angle(config: Config, head_dim: int, rotary_dim: int, first: float) -> None:
    spectrum = spectrum_from_config(config)
    assert (spectrum.head_dim, spectrum.rotary_dim, spectrum.rope_type) == (head_dim, rotary_dim, "default")
    assert spectrum.attention_factor == 1
    assert spectrum.inv_freq[1] == pytest.approx(first, rel=1e-10 if first == 0.8413951416 else 1e-14)


def test_last_angle_of_a_partial_head() -> None:  # case 5
    config = {"model_type": "qwen3_next", "head_dim": 256, "rope_theta": 1e7, "partial_rotary_factor": 0.25}
    spectrum = spectrum_from_config(config)
    assert spectrum.inv_freq[31] == pytest.approx(1.6548170999431814e-07, rel=1e-14)
    assert spectrum.permutation_to("interleaved")[:2].tolist() == [0, 32]


def test_integer_and_float_base_agree_to_the_bit() -> None:  # case 23
    whole = spectrum_from_config(WIDE | {"rope_theta": 500000})
    assert whole.angles == spectrum_from_config(WIDE | {"rope_theta": 500000.0}).angles
    assert whole.angle_texts[1] == "500000^(-2/128)"


@pytest.mark.parametrize(
    ("factor", "blended", "last"),
    [  # case 21, factor 32 and factor 8
        (32.0, (0.001290547928, 0.000429556797, 0.000097082878), 9.41830672543491e-08),
        (8.0, (0.001371893568, 0.000524846161, 0.000178507813), 3.767e-07),
    ],
)
def test_llama3(factor: float, blended: tuple[float, ...], last: float) -> None:
    spectrum = spectrum_from_config(
        {"model_type": "llama", "head_dim": 64, "rope_theta": 500000.0, "rope_scaling": LLAMA3 | {"factor": factor}}
    )
    default = plain(500000, 64)
    close(spectrum, np.concatenate([default[:15], spectrum.inv_freq[15:18], default[18:] / factor]))
    assert spectrum.inv_freq[14] == pytest.approx(0.003211445994752591, rel=1e-14)
    assert np.abs(spectrum.inv_freq[15:18] - blended).max() < 1e-12
    assert spectrum.inv_freq[31] == pytest.approx(last, rel=2e-4 if factor == 8.0 else 1e-14)
    assert spectrum.rope_type == "llama3"


@pytest.mark.parametrize("config", [GEMMA3_OLD, GEMMA3_NEW, {"model_type": "gemma3", "text_config": GEMMA3_OLD}])
def test_layer_types_of_gemma3(config: Config) -> None:  # case 25
    full = spectrum_from_config(config, layer_type="full_attention")
    local = spectrum_from_config(config, layer_type="sliding_attention")
    assert (full.rope_type, local.rope_type) == ("linear", "default")
    assert full.inv_freq[0] == 0.125
    assert full.inv_freq[1] == pytest.approx(0.112210891556, abs=1e-12)
    assert local.inv_freq[0] == 1
    assert local.inv_freq[1] == pytest.approx(0.9305720409296989, rel=1e-14)
    # ones head, gap between neighbours
    gap = [2 * np.sum(1 - np.cos(spectrum.inv_freq)) / 16 for spectrum in (local, full)]
    assert gap == pytest.approx([0.4459573769, 0.0050261106], abs=1e-10)


def test_layer_type_defaults_of_gemma3() -> None:  # case 27: global 1e6, local 1e4
    assert spectrum_from_config(GEMMA3, layer_type="full_attention").angle_texts[1] == "1000000^(-2/256)"
    assert spectrum_from_config(GEMMA3, layer_type="sliding_attention").angle_texts[1] == "10000^(-2/256)"


def test_layer_types_of_a_family_that_is_not_known() -> None:
    config = GEMMA3_NEW | {"model_type": "new"}
    assert spectrum_from_config(config, layer_type="full_attention", layout="half").rope_type == "linear"
    with pytest.raises(InvalidInputError, match="choose a layer_type out of sliding_attention, full_attention"):
        spectrum_from_config(config, layout="half")


def test_decimals_of_a_file_are_exact(tmp_path: Path) -> None:
    path = tmp_path / "tiny.json"
    path.write_text('{"model_type": "llama", "head_dim": 4, "rope_theta": 10000.1}')
    assert spectrum_from_config(path).angles[1] ** 2 == Fraction(10, 100001)
    assert spectrum_from_config(path).source == "tiny (llama, base (100001/10), head_dim 4, rotary_dim 4)"


def test_rotated_width_is_the_product_of_doubles() -> None:
    # 0.29 is a double just below 29/100, so that 100 times it truncates to 28, as in the library.
    config = {"model_type": "phi", "head_dim": 100, "partial_rotary_factor": Fraction(29, 100)}
    assert spectrum_from_config(config).rotary_dim == int(100 * 0.29) == 28


@pytest.mark.parametrize(
    ("config", "error", "parts"),
    [
        # case 9: widths that cannot be rotated
        (
            {"model_type": "gpt_neox", "hidden_size": 32, "num_attention_heads": 8, "rotary_pct": 0.75},
            FileFormatError,
            ("head_dim 4", "fraction 0.75", "width of 3"),
        ),
        (
            {"model_type": "llama", "hidden_size": 520, "num_attention_heads": 8},
            FileFormatError,
            ("head_dim 65", "fraction 1 ", "width of 65"),
        ),
        ({"model_type": "phi", "head_dim": 4, "partial_rotary_factor": 0.1}, FileFormatError, ("width of 0",)),
        (SMALL | {"hidden_size": 66}, FileFormatError, ("hidden_size 66 is not a multiple", "num_attention_heads 4")),
        # case 27: null is refused by name
        (WIDE | {"rope_theta": None}, FileFormatError, ("rope_theta is null", "remove the key")),
        (WIDE | {"rope_parameters": {"rope_theta": None}}, FileFormatError, ("rope_parameters: rope_theta is null",)),
        (
            {"model_type": "phi", "head_dim": 64, "partial_rotary_factor": None},
            FileFormatError,
            ("partial_rotary_factor is null",),
        ),
        # numbers are not trusted
        *[
            (WIDE | {"rope_theta": value}, FileFormatError, ("rope_theta must be", shown))
            for value, shown in [
                ("10000", "'10000'"),
                (True, "True"),
                ([1], "a list"),
                (-1, "-1"),
                (0, "0"),
                (1, "1"),
                (math.nan, "finite number, not nan"),
                (math.inf, "finite number, not inf"),
                (Fraction(10) ** 400, "too large for a double"),
                (10**400, "more than 64 bits"),
                (1e300, "below 2^128"),
            ]
        ],
        *[
            ({"model_type": "llama", "head_dim": value}, FileFormatError, ("head_dim must be a whole number", shown))
            for value, shown in [
                (10**9, "1000000000"),
                (0, "0"),
                (-2, "-2"),
                ("128", "'128'"),
                (True, "True"),
                (128.0, "128.0"),
                (Fraction(1, 2), "0.5"),
            ]
        ],
        (SMALL | {"num_attention_heads": 0}, FileFormatError, ("num_attention_heads must be",)),
        (SMALL | {"hidden_size": None}, FileFormatError, ("hidden_size must be",)),
        (SMALL | {"hidden_size": 1 << 20, "num_attention_heads": 1}, FileFormatError, ("wider than 8192",)),
        ({"model_type": "llama"}, FileFormatError, ("hidden_size is missing",)),
        ({"model_type": "gptj", "n_embd": 64}, FileFormatError, ("n_head is missing",)),
        *[
            (
                {"model_type": "phi", "head_dim": 64, "partial_rotary_factor": value},
                FileFormatError,
                ("partial_rotary_factor must be above 0 and at most 1",),
            )
            for value in (0, -0.5, 1.5, Fraction(10) ** 400)
        ],
        ({"model_type": "gptj", "n_embd": 64, "n_head": 1, "rotary_dim": 65}, FileFormatError, ("rotary_dim must be",)),
        (
            {"model_type": "gptj", "n_embd": 64, "n_head": 1, "rotary_dim": None},
            FileFormatError,
            ("rotary_dim must be",),
        ),
        ({"model_type": "gptj", "n_embd": 64, "n_head": 1, "rotary_dim": 7}, FileFormatError, ("width of 7",)),
        ({"model_type": "deepseek_v2", "qk_rope_head_dim": None}, FileFormatError, ("qk_rope_head_dim is null",)),
        # stated values that the class would pass over
        (WIDE | {"partial_rotary_factor": 0.5}, FileFormatError, ("always rotates the whole head",)),
        (
            {"model_type": "gpt_neox", "hidden_size": 512, "num_attention_heads": 8, "rope_theta": 500000},
            FileFormatError,
            ("rope_theta is 500000", "rotary_emb_base"),
        ),
        (
            {
                "model_type": "gpt_neox",
                "hidden_size": 512,
                "num_attention_heads": 8,
                "rotary_pct": 0.25,
                "partial_rotary_factor": 0.5,
            },
            FileFormatError,
            ("partial_rotary_factor is 0.5", "rotary_pct"),
        ),
        (
            {"model_type": "gpt_neox", "hidden_size": 512, "num_attention_heads": 8, "partial_rotary_factor": 0.5},
            FileFormatError,
            ("partial_rotary_factor is 0.5", "rotary_pct (absent"),
        ),
        (
            {"model_type": "gptj", "n_embd": 256, "n_head": 1, "rope_theta": 500000},
            FileFormatError,
            ("rope_theta is 500000", "fixed base 10000"),
        ),
        (
            {"model_type": "falcon", "hidden_size": 128, "num_attention_heads": 2, "head_dim": 32},
            FileFormatError,
            ("head_dim is 32", "hidden_size / num_attention_heads = 64"),
        ),
        # rope dictionaries
        (WIDE | {"rope_scaling": "linear"}, FileFormatError, ("rope_scaling must be an object or null",)),
        (WIDE | {"rope_scaling": {"factor": 2.0}}, FileFormatError, ("rope_scaling: rope_type is missing",)),
        (WIDE | {"rope_scaling": {"rope_type": None}}, FileFormatError, ("rope_type must be a text",)),
        (WIDE | {"rope_scaling": {"rope_type": 3}}, FileFormatError, ("rope_type must be a text",)),
        (WIDE | {"rope_scaling": {"type": "linear"}}, FileFormatError, ("factor is missing", "linear needs it")),
        (WIDE | {"rope_scaling": {"type": "linear", "factor": 0}}, FileFormatError, ("factor must be positive",)),
        *[
            (
                WIDE | {"rope_scaling": {k: v for k, v in LLAMA3.items() if k != key}},
                FileFormatError,
                (f"{key} is missing", "llama3 needs it"),
            )
            for key in LLAMA3
            if key != "rope_type"
        ],
        (
            WIDE | {"rope_scaling": LLAMA3, "original_max_position_embeddings": 4096},
            FileFormatError,
            ("original_max_position_embeddings is 4096 at top level, 8192 inside",),
        ),
        *[
            (
                WIDE | {"rope_scaling": {"type": kind, "factor": 2.0}},
                UnsupportedError,
                (repr(kind), "default, linear, llama3"),
            )
            for kind in ("dynamic", "yarn", "longrope", "su", "proportional", "mrope", "LINEAR")
        ],
        (WIDE | {"model_type": "gpt_oss"}, UnsupportedError, ("'yarn'", "class default")),
        (WIDE | {"model_type": "qwen", "use_dynamic_ntk": True}, UnsupportedError, ("dynamic (use_dynamic_ntk)",)),
        (WIDE | {"model_type": "falcon", "alibi": True}, UnsupportedError, ("alibi",)),
        (
            {"model_type": "gptj", "n_embd": 64, "n_head": 1, "rope_scaling": {"type": "linear", "factor": 2}},
            UnsupportedError,
            ("no rope scaling",),
        ),
        # families
        ({"model_type": "mimo", "head_dim": 128}, UnsupportedError, ("model_type 'mimo' is not known", "layout")),
        ({"head_dim": 128}, UnsupportedError, ("model_type is missing", "layout")),
        ({"model_type": 7}, FileFormatError, ("model_type must be a text",)),
        ({"model_type": "llama", "text_config": [1]}, FileFormatError, ("text_config must be an object",)),
        *[({"model_type": name, "head_dim": 64}, UnsupportedError, (name, "no RoPE")) for name in WITHOUT_ROPE],
        # layer types
        (WIDE | {"rope_parameters": {"a\nb": {}, "c": {}}}, InvalidInputError, (r"'a\nb', c",)),
        (GEMMA3_OLD, InvalidInputError, ("choose a layer_type out of full_attention, sliding_attention",)),
        (
            {"model_type": "deepseek_v3", "rope_interleave": 1},
            FileFormatError,
            ("rope_interleave must be true or false",),
        ),
    ],
)
def test_refused(config: Config, error: type[RopegeoError], parts: tuple[str, ...]) -> None:
    with pytest.raises(RopegeoError) as caught:
        spectrum_from_config(config)
    message = str(caught.value)
    assert type(caught.value) is error, message
    assert "\n" not in message
    assert message.startswith("config")
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("config", "layer_type", "part"),
    [
        (WIDE, "full_attention", "all its layers turn alike"),
        (GEMMA3_OLD, "global", "unknown; choose one of full_attention, sliding_attention"),
    ],
)
def test_layer_type_refused(config: Config, layer_type: str, part: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(part)):
        spectrum_from_config(config, layer_type=layer_type)


def test_flat_rope_parameters_of_a_layered_family_are_refused() -> None:
    config = GEMMA3 | {"rope_parameters": {"rope_type": "default", "rope_theta": 10000}}
    with pytest.raises(FileFormatError, match="one object for each of full_attention, sliding_attention"):
        spectrum_from_config(config, layer_type="full_attention")


def test_olmo3_base_that_only_half_the_layers_would_take_is_refused() -> None:
    config = {"model_type": "olmo3", "head_dim": 128, "rope_theta": 10000}
    assert spectrum_from_config(config, layer_type="full_attention").angle_texts[1] == "10000^(-2/128)"
    with pytest.raises(FileFormatError, match="rope_theta is 10000"):
        spectrum_from_config(config, layer_type="sliding_attention")


class TestLayout:
    def test_unknown_family_with_a_layout_must_state_its_base(self) -> None:
        config = {"model_type": "mimo", "head_dim": 128}
        with pytest.raises(FileFormatError, match="rope_theta is missing, and no default"):
            spectrum_from_config(config, layout="half")
        spectrum = spectrum_from_config(config | {"rope_theta": 640000}, layout="interleaved")
        assert (spectrum.layout, spectrum.angle_texts[1]) == ("interleaved", "640000^(-2/128)")

    def test_given_layout_overrides_the_family(self) -> None:
        assert spectrum_from_config(WIDE).layout == "half"
        assert spectrum_from_config(WIDE, layout="interleaved").layout == "interleaved"

    def test_unknown_word(self) -> None:
        with pytest.raises(InvalidInputError, match="use one of interleaved, half"):
            spectrum_from_config(WIDE, layout="neox")

    @pytest.mark.parametrize(("flag", "layout"), [(True, "interleaved"), (False, "half")])
    def test_flag_of_deepseek(self, flag: bool, layout: str) -> None:
        assert spectrum_from_config({"model_type": "deepseek_v3", "rope_interleave": flag}).layout == layout

    def test_interleaved_families(self) -> None:
        interleaved = {name for name, family in FAMILIES.items() if family.layout == "interleaved"}
        assert interleaved == {
            *("codegen", "cohere", "cohere2", "deepseek_v2", "deepseek_v3", "ernie4_5", "ernie4_5_moe", "glm", "glm4"),
            *("gptj", "helium", "llama4", "llama4_text"),
        }


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.fractions(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
KEYS = (
    *("head_dim", "hidden_size", "num_attention_heads", "rope_theta", "rope_scaling", "rope_parameters", "text_config"),
    *("partial_rotary_factor", "rotary_pct", "rotary_emb_base", "rotary_dim", "n_embd", "n_head", "qk_rope_head_dim"),
    *("rope_local_base_freq", "rope_interleave", "original_max_position_embeddings", "alibi"),
)


@settings(max_examples=50)
@given(
    model_type=st.sampled_from(sorted(FAMILIES)),
    values=st.dictionaries(st.sampled_from(KEYS), JSON_VALUES, max_size=6),
    scaling=st.none() | st.dictionaries(st.sampled_from([*LLAMA3, "type", "rope_theta"]), JSON_VALUES, max_size=4),
)
def test_any_content_gives_a_spectrum_or_one_line(model_type: str, values: Config, scaling: Config | None) -> None:
    config: Config = {"model_type": model_type, "hidden_size": 64, "num_attention_heads": 4, "n_embd": 64, "n_head": 1}
    config |= {"rope_scaling": scaling} if scaling is not None else {}
    try:
        spectrum = spectrum_from_config(config | values)
    except RopegeoError as error:
        problem = str(error)
    else:
        problem = "" if np.all(spectrum.inv_freq > 0) else "an angle\nis not positive"
    assert "\n" not in problem


@settings(max_examples=50)
@given(
    base=st.integers(2, 10**9),
    half=st.integers(1, 64),
    name=st.sampled_from([name for name in FAMILIES if FAMILIES[name].layers is None]),
)
def test_dictionary_beats_everything(base: int, half: int, name: str) -> None:
    family = FAMILIES[name]
    if family.rotary_dim is not None:  # a class without a rope dictionary
        return
    width = 2 * half
    config: Config = {
        "model_type": name,
        family.head_dim_key: width,
        "hidden_size": 4 * width,
        "num_attention_heads": 4,
        "rope_theta": 31337,
        "rope_parameters": {"rope_type": "default", "rope_theta": base, "partial_rotary_factor": 1.0},
    }
    close(spectrum_from_config(config), plain(base, width))
