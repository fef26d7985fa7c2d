"""Reading configuration files, the named presets, and configurations of real models.

Numbers of presets come from the models' published configurations, those of Llama 3 from the project's list of
public cases (case number in the comment).
"""

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ropegeo.errors import FileFormatError, InvalidInputError, RopegeoError
from ropegeo.spectrum import RopeSpectrum, load_rope, preset, preset_names, spectrum_from_config
from ropegeo.spectrum.config_file import MAX_CONFIG_BYTES, read_config

SHARED = Path(__file__).parents[2] / "shared"

WIDE: dict[str, Any] = {"model_type": "llama", "head_dim": 128}


def close(spectrum: RopeSpectrum, base: float, rotary_dim: int) -> None:
    """The default frequencies, in plain float64, to a few ulp of the exponent."""
    expected = np.array([base ** (-2 * plane / rotary_dim) for plane in range(rotary_dim // 2)])
    np.testing.assert_allclose(spectrum.inv_freq, expected, rtol=40 * np.finfo(float).eps)


class TestFile:
    @pytest.mark.parametrize(
        ("content", "part"),
        [
            (b"", "not a readable JSON"),
            (b"{", "not a readable JSON"),
            (b"\xff\xfe\x00", "not a readable JSON"),
            (b"[1]", "holds a JSON list, not an object"),
            (b"3", "holds a JSON int"),
            (b'{"rope_theta": NaN}', "NaN is no JSON number"),
            (b'{"rope_theta": -Infinity}', "Infinity is no JSON number"),
            (b'{"a": 1, "a": 2}', "key 'a' stands twice"),
            (b'{"a": 1e99999999}', "too large to write out"),
            (b'{"a": ' + b"9" * 5000 + b"}", "not a readable JSON"),
            (b'{"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deeply"),
            (b'{"a": "' + b"x" * MAX_CONFIG_BYTES + b'"}', "larger than 10 MB"),
        ],
    )
    def test_refused(self, tmp_path: Path, content: bytes, part: str) -> None:
        path = tmp_path / "bad.json"
        path.write_bytes(content)
        with pytest.raises(FileFormatError) as caught:
            load_rope(str(path))
        assert part in str(caught.value)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_numbers_are_exact(self, tmp_path: Path) -> None:
        path = tmp_path / "config.json"
        path.write_text('\ufeff{"a": 0.1, "b": 1e-400, "c": 3}', encoding="utf-8")
        assert read_config(tmp_path) == {"a": Fraction(1, 10), "b": Fraction(1, 10**400), "c": 3}

    def test_file_and_key_are_named(self, tmp_path: Path) -> None:
        path = tmp_path / "deep.json"
        path.write_text(json.dumps({"model_type": "x", "text_config": WIDE | {"rope_theta": "1"}}))
        with pytest.raises(FileFormatError, match=re.escape(f"{path}: text_config: rope_theta must be a number")):
            spectrum_from_config(path)

    def test_folder_and_file_give_the_same(self, tmp_path: Path) -> None:
        folder = tmp_path / "my-model"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(WIDE))
        by_folder, by_file = load_rope(str(folder)), spectrum_from_config(folder / "config.json")
        assert by_folder.source == by_file.source == "my-model (llama, base 10000, head_dim 128, rotary_dim 128)"
        assert spectrum_from_config(WIDE).angles == by_file.angles

    @pytest.mark.parametrize("name", ["nothing.json", "a\0b", "x" * 5000])
    def test_missing(self, name: str) -> None:
        with pytest.raises(InvalidInputError, match="no file at"):
            read_config(name)


class TestPresets:
    @pytest.mark.parametrize(
        ("name", "base", "head_dim", "rotary_dim", "layout"),
        [  # from the models' published configurations
            ("gpt-j-6b", 1e4, 256, 64, "interleaved"),
            ("gpt-neox-20b", 1e4, 96, 24, "half"),
            ("llama-2-7b", 1e4, 128, 128, "half"),
            ("llama-3-8b", 5e5, 128, 128, "half"),
            ("mistral-7b", 1e4, 128, 128, "half"),
            ("mistral-7b-v0.3", 1e6, 128, 128, "half"),
            ("mixtral-8x7b", 1e6, 128, 128, "half"),
            ("paper", 1e4, 128, 128, "interleaved"),
            ("phi-2", 1e4, 80, 32, "half"),
            ("pythia-1b", 1e4, 256, 64, "half"),
            ("pythia-410m", 1e4, 64, 16, "half"),
            ("qwen2.5-7b", 1e6, 128, 128, "half"),
            ("qwen3-0.6b", 1e6, 128, 128, "half"),
            ("smollm2-135m", 1e5, 64, 64, "half"),
        ],
    )
    def test_values(self, name: str, base: float, head_dim: int, rotary_dim: int, layout: str) -> None:
        spectrum = preset(name)
        assert (spectrum.head_dim, spectrum.layout, spectrum.source) == (head_dim, layout, f"preset {name}")
        close(spectrum, base, rotary_dim)

    def test_llama_3(self) -> None:  # case 21
        assert preset("llama-3.2-1b").inv_freq[31] == pytest.approx(9.41830672543491e-08, rel=1e-14)
        assert preset("llama-3.1-8b").inv_freq[63] == pytest.approx(500000 ** (-63 / 64) / 8, rel=1e-14)

    def test_every_name_loads(self) -> None:
        for name in preset_names():
            assert load_rope(name).source == f"preset {name}"

    def test_unknown_name(self) -> None:
        with pytest.raises(
            InvalidInputError, match=r"'llama-3.2-1B' is unknown; did you mean llama-3\.2-1b\? presets: "
        ):
            preset("llama-3.2-1B")

    def test_neither_preset_nor_path(self) -> None:
        with pytest.raises(InvalidInputError) as caught:
            load_rope("qwen3-06b")
        message = str(caught.value)
        assert "neither a preset nor the path" in message
        assert "did you mean qwen3-0.6b?" in message
        assert all(name in message for name in preset_names())
        assert "\n" not in message

    def test_layout_and_layer_type(self) -> None:
        assert load_rope("paper", layout="half").layout == "half"
        with pytest.raises(InvalidInputError, match="leave layer_type 'full_attention' out"):
            load_rope("paper", layer_type="full_attention")


@pytest.fixture(scope="module")
def configs() -> Path:
    folder = SHARED / "configs"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}")
    return folder


READABLE: Mapping[str, tuple[float, int, int, str]] = {
    "codegen-2b-multi": (1e4, 128, 64, "interleaved"),
    "falcon-40b": (1e4, 64, 64, "half"),
    "glm-4.5": (1e6, 128, 64, "half"),
    "gpt-j-6b": (1e4, 256, 64, "interleaved"),
    "granite-3.3-8b": (1e7, 128, 128, "half"),
    "llama-1-7b": (1e4, 128, 128, "half"),
    "minimax-m2.5": (5e6, 128, 64, "half"),
    "phi-2": (1e4, 80, 32, "half"),
    "pythia-410m": (1e4, 64, 16, "half"),
    "qwen3-0.6b": (1e6, 128, 128, "half"),
    "qwen3-vl-2b": (5e6, 128, 128, "half"),
    "qwen3.5-27b": (1e7, 256, 64, "half"),
    "smollm2-135m": (1e5, 64, 64, "half"),
    "stablelm-2": (1e4, 128, 32, "half"),
}
REFUSED = {
    "deepseek-v3": "'yarn'",
    "gpt-oss-20b": "'yarn'",
    "gpt-oss-120b": "'yarn'",
    "gemma-3-270m": "layer_type",
    "mimo-7b-base": "'mimo'",
    "nemotron-3-nano-30b-a3b": "nemotron_h has no RoPE",
    "phi-4-multimodal": "'phi4mm'",
    "qwen-1": "use_dynamic_ntk",
}


@pytest.mark.shared
@pytest.mark.parametrize("name", READABLE)
def test_real_config(configs: Path, name: str) -> None:
    base, head_dim, rotary_dim, layout = READABLE[name]
    spectrum = load_rope(str(configs / f"{name}.json"))
    assert (spectrum.head_dim, spectrum.layout) == (head_dim, layout)
    close(spectrum, base, rotary_dim)


@pytest.mark.shared
def test_every_real_config_is_read_or_refused_by_name(configs: Path) -> None:
    for path in sorted(configs.glob("*.json")):
        if path.stem in REFUSED:
            with pytest.raises(RopegeoError, match=REFUSED[path.stem]) as caught:
                load_rope(str(path))
            assert str(path) in str(caught.value)
        else:
            assert load_rope(str(path)).source.startswith(f"{path.stem} (")


@pytest.mark.shared
def test_real_config_with_layer_types(configs: Path) -> None:
    path = str(configs / "gemma-3-270m.json")
    close(load_rope(path, layer_type="full_attention"), 1e6, 256)
    close(load_rope(path, layer_type="sliding_attention"), 1e4, 256)
