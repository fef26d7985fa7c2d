"""The table of families against the library it describes: angles, defaults and layout, by running its own code."""

import importlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ropegeo.errors import RopegeoError, UnsupportedError
from ropegeo.spectrum import RopeSpectrum, spectrum_from_config
from ropegeo.spectrum.config_file import read_config
from ropegeo.spectrum.families import FAMILIES, WITHOUT_ROPE

pytestmark = pytest.mark.models
torch = pytest.importorskip("torch", reason="torch is not installed")
StrictDataclassFieldValidationError = pytest.importorskip("huggingface_hub.errors").StrictDataclassFieldValidationError
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SHARED = Path(__file__).parents[2] / "shared"
LAYERED = {name for name, family in FAMILIES.items() if family.layers is not None}
STATED_WIDTH = {name for name, family in FAMILIES.items() if family.rotary_dim is not None}
LATENT = {name for name, family in FAMILIES.items() if family.head_dim_key != "head_dim"}
SCALED_BY_DEFAULT = {name for name, family in FAMILIES.items() if family.rope is not None}


def library_config(config: dict[str, Any]) -> Any:
    """The library's configuration object, its text part."""
    plain = dict(config)
    return transformers.AutoConfig.for_model(plain.pop("model_type"), **plain).get_text_config()


def modeling(config: Any) -> Any:
    return importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))


def rotary_class(config: Any) -> Any:
    module = modeling(config)
    (found,) = (
        value
        for name, value in vars(module).items()
        if name.endswith("RotaryEmbedding") and "Vision" not in name and value.__module__ == module.__name__
    )
    return found


def library_inv_freq(config: Any, layer_type: str | None = None) -> np.ndarray:
    """Angles of the library's own rotary module; for GPT-J, of its table of sines."""
    module = modeling(config)
    if hasattr(module, "create_sinusoidal_positions"):
        # The table starts with sines; row 1 is position 1, and all angles are at most 1 < pi/2.
        row = module.create_sinusoidal_positions(2, config.rotary_dim)[1].double().numpy()
        angles: np.ndarray = np.arctan2(row[: len(row) // 2], row[len(row) // 2 :])
        return angles
    rotary = rotary_class(config)(config)
    name = "inv_freq" if layer_type is None else f"{layer_type}_inv_freq"
    inv_freq: np.ndarray = getattr(rotary, name).double().numpy()
    return inv_freq


def agree(spectrum: RopeSpectrum, theirs: np.ndarray) -> None:
    # Library: exponent, power, reciprocal and scaling in float32. The exponent's relative rounding 2**-24 is
    # multiplied by |log angle| (at most log 1e10), the rest is a few roundings.
    tolerance = 2.0**-24 * (math.log(1e10) + 8)
    assert spectrum.inv_freq.shape == theirs.shape
    np.testing.assert_allclose(spectrum.inv_freq, theirs, rtol=tolerance)


def minimal(name: str, **keys: Any) -> dict[str, Any]:
    """A small configuration; hidden size over heads is 80, which no class has for its default head_dim."""
    family = FAMILIES[name]
    config: dict[str, Any] = {"model_type": name, family.hidden_keys[0]: 320, family.heads_keys[0]: 4}
    if name in LATENT:
        config["qk_rope_head_dim"] = 32
    return config | keys


def nest(config: dict[str, Any]) -> dict[str, Any]:
    """Under `text_config`, where the class of a multimodal model looks for it."""
    inner = dict(config)
    name = inner.pop("model_type")
    multimodal = "text_config" in type(transformers.AutoConfig.for_model(name)).sub_configs
    return {"model_type": name, "text_config": inner} if multimodal else config


def both(config: dict[str, Any], layer_type: str | None = None) -> None:
    theirs = library_config(nest(config))
    agree(spectrum_from_config(config, layer_type=layer_type), library_inv_freq(theirs, layer_type))


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - LAYERED - SCALED_BY_DEFAULT))
def test_class_defaults(name: str) -> None:
    both(minimal(name))


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - LAYERED - SCALED_BY_DEFAULT - STATED_WIDTH - LATENT))
def test_class_default_of_the_width_counts_only_where_the_key_is_absent(name: str) -> None:
    if not FAMILIES[name].head_dim_stated:
        return
    both(minimal(name, head_dim=64))
    try:
        library_config(nest(minimal(name, head_dim=None)))
    except StrictDataclassFieldValidationError:  # some classes take no null; ours then derives like the others
        assert spectrum_from_config(minimal(name, head_dim=None)).head_dim == 80
    else:
        both(minimal(name, head_dim=None))


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - LAYERED - STATED_WIDTH))
def test_dictionary(name: str) -> None:
    both(minimal(name, rope_parameters={"rope_type": "default", "rope_theta": 12345.0}))
    if name not in ("phi3", "phimoe"):  # their configuration classes accept no linear scaling
        both(minimal(name, rope_parameters={"rope_type": "linear", "rope_theta": 12345.0, "factor": 3.0}))


@pytest.mark.parametrize("name", sorted(n for n, f in FAMILIES.items() if "rope_theta" in f.base_keys and not f.layers))
def test_top_level_base(name: str) -> None:
    if name not in SCALED_BY_DEFAULT:
        both(minimal(name, rope_theta=77777.0))


@pytest.mark.parametrize("name", sorted(n for n, f in FAMILIES.items() if f.fraction is not None))
def test_rotated_fraction(name: str) -> None:
    key = FAMILIES[name].fraction_keys[0]
    both(minimal(name, **{key: 0.3}))
    both(minimal(name, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.75}))


@pytest.mark.parametrize("name", sorted(set(FAMILIES) - STATED_WIDTH - LAYERED))
def test_families_without_a_fraction_ignore_it(name: str) -> None:
    if FAMILIES[name].fraction is not None:
        return
    rope = {"rope_type": "default", "rope_theta": 1e4}
    config = minimal(name, rope_parameters=rope | {"partial_rotary_factor": 0.5})
    with pytest.raises(RopegeoError, match="always rotates the whole head"):
        spectrum_from_config(config)
    both(minimal(name, rope_parameters=rope | {"partial_rotary_factor": 1.0}))


LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen3", "llama4_text", "smollm3", "olmo2"])
@pytest.mark.parametrize("extra", [{}, {"factor": 32.0}, {"high_freq_factor": 1.0, "factor": 16.0}])
def test_llama3(name: str, extra: dict[str, float]) -> None:
    both(minimal(name, rope_parameters=LLAMA3 | extra))


def test_llama3_is_the_default_of_apertus() -> None:
    both(minimal("apertus"))


def test_yarn_is_the_default_of_gpt_oss() -> None:
    assert library_config(minimal("gpt_oss")).rope_parameters["rope_type"] == "yarn"
    with pytest.raises(UnsupportedError, match="'yarn'"):
        spectrum_from_config(minimal("gpt_oss"))


@pytest.mark.parametrize("layer_type", ["full_attention", "sliding_attention"])
@pytest.mark.parametrize("name", sorted(LAYERED))
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        {"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 3e5}}},
        {"rope_parameters": {"sliding_attention": {"rope_theta": 2e4}, "full_attention": None}},
    ],
)
def test_layer_types(name: str, layer_type: str, keys: dict[str, Any]) -> None:
    both(minimal(name, **keys), layer_type)


def test_old_keys_of_gemma3() -> None:
    config = minimal("gemma3_text", rope_theta=5e5, rope_local_base_freq=2e4)
    both(config, "full_attention")
    both(config, "sliding_attention")


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_logits_of_rotated_vectors(name: str) -> None:
    """All q_i . k_j after the family's own rotation equal ours: angles, pairing and pass-through at once.

    Dot products, because some classes reorder the coordinates of queries and keys alike. Only the wrong layout
    must differ, so it is tried as well.
    """
    layer_type = "full_attention" if name in LAYERED else None
    config = minimal(name, **{FAMILIES[name].hidden_keys[0]: 512})  # the image axes of Qwen2-VL need 64 planes
    if name in SCALED_BY_DEFAULT:
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e4}
    spectrum = spectrum_from_config(config, layer_type=layer_type)
    generator = np.random.default_rng(7)
    queries, keys = generator.standard_normal((2, LENGTH, spectrum.head_dim))
    theirs = library_logits(library_config(nest(config)), queries, keys, spectrum.rotary_dim, layer_type)
    positions = np.arange(LENGTH)
    # float32: an entry of a row of length <= sqrt(head_dim) * 4 has phase error below LENGTH * 20 * 2**-24.
    tolerance = 2.0**-24 * (20 * LENGTH + 8) * 16 * spectrum.head_dim
    ours = spectrum.rotate(queries, positions) @ spectrum.rotate(keys, positions).T
    np.testing.assert_allclose(ours, theirs, atol=tolerance)
    other = spectrum.with_layout("half" if spectrum.layout == "interleaved" else "interleaved")
    assert np.abs(other.rotate(queries, positions) @ other.rotate(keys, positions).T - theirs).max() > 1


LENGTH = 6


def library_logits(
    config: Any, queries: np.ndarray, keys: np.ndarray, rotary_dim: int, layer_type: str | None
) -> np.ndarray:
    module = modeling(config)
    q, k = (torch.tensor(rows[:, :rotary_dim], dtype=torch.float32)[None, None] for rows in (queries, keys))
    passed = queries[:, rotary_dim:] @ keys[:, rotary_dim:].T
    if hasattr(module, "create_sinusoidal_positions"):  # one tensor at a time, (batch, position, head, width)
        sin, cos = module.create_sinusoidal_positions(LENGTH, rotary_dim)[None].chunk(2, dim=-1)
        q, k = (module.apply_rotary_pos_emb(x.transpose(1, 2), sin, cos).transpose(1, 2) for x in (q, k))
    else:
        extra = () if layer_type is None else (layer_type,)
        turn = rotary_class(config)(config)(q, torch.arange(LENGTH)[None], *extra)
        if hasattr(module, "apply_rotary_pos_emb_interleave"):
            q, k = module.apply_rotary_pos_emb_interleave(q, k, *turn)
        elif hasattr(module, "apply_rotary_pos_emb"):
            q, k = module.apply_rotary_pos_emb(q, k, *turn)
        elif config.model_type == "llama4_text":  # (batch, position, head, width)
            q, k = (x.transpose(1, 2) for x in module.apply_rotary_emb(q.transpose(1, 2), k.transpose(1, 2), turn))
        else:
            q, k = module.apply_rotary_emb(q, k, turn)
    rotated: np.ndarray = (q.double() @ k.double().transpose(-1, -2))[0, 0].numpy()
    logits: np.ndarray = rotated + passed
    return logits


def test_flag_of_deepseek_is_the_library_default() -> None:
    assert library_config(minimal("deepseek_v3")).rope_interleave is True


@pytest.mark.parametrize("name", sorted(WITHOUT_ROPE))
def test_families_without_rope_have_no_rotary_module(name: str) -> None:
    module = modeling(library_config({"model_type": name}))
    assert not [found for found in vars(module) if found.endswith("RotaryEmbedding")]


@pytest.fixture(scope="module")
def configs() -> Path:
    folder = SHARED / "configs"
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}")
    return folder


@pytest.mark.shared
def test_real_configs(configs: Path) -> None:
    compared = 0
    for path in sorted(configs.glob("*.json")):
        layer_types = ("full_attention", "sliding_attention") if path.stem == "gemma-3-270m" else (None,)
        for layer_type in layer_types:
            try:
                spectrum = spectrum_from_config(path, layer_type=layer_type)
            except UnsupportedError:
                continue
            assert read_config(path)["model_type"] in FAMILIES
            theirs = transformers.AutoConfig.from_pretrained(str(path)).get_text_config()
            agree(spectrum, library_inv_freq(theirs, layer_type))
            compared += 1
    assert compared >= 25
