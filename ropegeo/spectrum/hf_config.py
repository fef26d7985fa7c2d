"""The RoPE spectrum that a Hugging Face `config.json` describes.

Which key counts, first to last: a value inside the rope dictionary (a non-empty `rope_scaling` replaces
`rope_parameters`; inside it `rope_type` beats `type`), then the top-level name that the family reads, then the
family's class default (`ropegeo.spectrum.families`). That is the order of transformers 5.24. Where that library
would pass over a stated value in silence, ropegeo refuses and names it.

Two readings to know: latent attention (DeepSeek) rotates a sub-head of its own, so `head_dim` of the spectrum is
`qk_rope_head_dim`, all of it rotated; and where only some layers rotate (`source` says which), the spectrum is that
of the rotating ones. `mrope_section` splits planes among image axes; on text all axes agree and RoPE is ordinary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ropegeo.errors import FileFormatError, InvalidInputError, UnsupportedError
from ropegeo.spectrum.config_file import ConfigSection, config_path, read_config, shown_value
from ropegeo.spectrum.families import FAMILIES, UNSTATED, WITHOUT_ROPE, Family, LayerDefault
from ropegeo.spectrum.layout import Layout, check_layout
from ropegeo.spectrum.rope import RopeSpectrum, angle_texts, decimal_text
from ropegeo.spectrum.rope_types import Angles, default_angles, linear_angles, llama3_angles

ROPE_TYPES = ("default", "linear", "llama3")
MAX_CONFIG_HEAD_DIM = 8192
_LLAMA3_KEYS = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
_TYPE_KEYS = ("rope_type", "type")


def spectrum_from_config(
    config: str | Path | Mapping[str, Any], *, layer_type: str | None = None, layout: str | None = None
) -> RopeSpectrum:
    """The spectrum of the rotating heads of a model, angle_k = base**(-2k/rotary_dim) before any scaling.

    Args:
        config: path of a `config.json` or of the folder that holds it, or its content. From a file every number
            is exactly the decimal written there; from a mapping a float is exactly the double it is.
        layer_type: which layers, where layer types turn differently (Gemma 3); otherwise leave it out.
        layout: needed for a model_type that is not known, whose file must then state the base; for a known one it
            overrides the family's layout (original Llama weights are interleaved).

    Returns:
        The spectrum; `source` tells file, family, base and widths.

    Raises:
        FileFormatError: the file is no configuration, or a value in it is missing, wrong or contradictory.
        UnsupportedError: a model_type or rope type that this version does not know, or a model without RoPE.
        InvalidInputError: no such file, or `layer_type` is missing, unknown or not needed.

    Example:
        >>> llama = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 500000}
        >>> float(spectrum_from_config(llama).inv_freq[1])
        0.8146172338565447
    """
    if isinstance(config, Mapping):
        return _spectrum(config, "config", layer_type, layout)
    path = config_path(config)
    label = path.parent.resolve().name if path.stem == "config" else path.stem
    return _spectrum(read_config(path), str(config), layer_type, layout, label=label)


def _spectrum(
    outer: Mapping[str, Any], where: str, layer_type: str | None, layout: str | None, label: str = "config"
) -> RopeSpectrum:
    config = ConfigSection(where, outer)
    text = config.mapping("text_config")
    name = config.text("model_type")
    if text:
        config = ConfigSection(f"{where}: text_config", text)
        name = config.text("model_type") or name
    if config.values.get("use_dynamic_ntk") is True:
        raise _unsupported_type(where, "dynamic (use_dynamic_ntk)")
    if config.values.get("alibi") is True:
        raise UnsupportedError(f"{where}: alibi is true, so this model does not rotate; there is no RoPE to read")

    family = _family(where, name, layout)
    rope = _rope_dictionary(config, family, layer_type)
    rope_type = rope.rope_type()
    head_dim = _head_dim(config, family)
    width, fraction_text = _rotary_width(config, family, rope, head_dim)
    base = _base(config, family, rope)
    try:
        angles = _angles(config, rope, rope_type, base, width)
        shown = f"base {decimal_text(base)}, head_dim {head_dim}, rotary_dim {width}"
        extra = f", {rope_type}" if rope_type != "default" else ""
        extra += f", {layer_type}" if layer_type else ""
        extra += f"; rotates {family.rotating_layers}" if family.rotating_layers else ""
        return RopeSpectrum(
            angles=angles,
            head_dim=head_dim,
            layout=_layout(config, family, layout),
            rope_type=rope_type,
            source=f"{label} ({name or 'no model_type'}, {shown}{extra})",
            angle_texts=angle_texts(angles, base, width),
        )
    except InvalidInputError as error:  # the values are the file's, so the file is named
        raise FileFormatError(
            f"{where}: head_dim {head_dim}, rotated fraction {fraction_text}, base {shown_value(base)}: {error}"
        ) from error


@dataclass(frozen=True, kw_only=True)
class _Rope:
    """The rope dictionary that counts, and the class defaults of the layer type it is for."""

    entries: ConfigSection
    layer: LayerDefault | None

    def rope_type(self) -> str:
        key = next((key for key in _TYPE_KEYS if key in self.entries.values), None)
        if key is None:
            if "factor" in self.entries.values:
                self.entries.refuse("rope_type", 'is missing beside factor; state it, for example "linear"')
            return "default"
        rope_type = self.entries.text(key)
        if rope_type is None:
            self.entries.refuse(key, f"must be a text, not null; use one of {', '.join(ROPE_TYPES)}")
        if rope_type not in ROPE_TYPES:
            raise _unsupported_type(self.entries.where, rope_type)
        return rope_type


def _family(where: str, name: str | None, layout: str | None) -> Family:
    if layout is not None:
        check_layout(layout)
    if name is not None and name in WITHOUT_ROPE:
        raise UnsupportedError(f"{where}: model_type {name} has no RoPE: {WITHOUT_ROPE[name]}")
    if name is not None and name in FAMILIES:
        return FAMILIES[name]
    if layout is not None:
        return UNSTATED
    what = "model_type is missing" if name is None else f"model_type {name[:60]!r} is not known to this version"
    raise UnsupportedError(f'{where}: {what}; give its layout ("half" or "interleaved") to read it all the same')


def _layout(config: ConfigSection, family: Family, layout: str | None) -> Layout:
    if layout is not None:
        return check_layout(layout)
    if family.interleave_key is None or family.interleave_key not in config.values:
        return family.layout
    value = config.values[family.interleave_key]
    if not isinstance(value, bool):
        config.refuse(family.interleave_key, f"must be true or false, not {shown_value(value)}")
    return "interleaved" if value else "half"


def _rope_dictionary(config: ConfigSection, family: Family, layer_type: str | None) -> _Rope:
    key = next((key for key in ("rope_scaling", "rope_parameters") if config.mapping(key)), None)
    values = config.mapping(key) if key else {}
    if values and family.rotary_dim is not None:
        raise UnsupportedError(f"{config.where}: {key} is set, but this model class has no rope scaling; remove it")
    nested = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    if family.layers is not None:
        return _layer_rope(config, family.layers, layer_type)
    if nested:
        chosen = _choose(config.where, layer_type, tuple(nested))
        return _Rope(entries=ConfigSection(f"{config.where}: {key}: {chosen}", nested[chosen]), layer=None)
    if layer_type is not None:
        raise InvalidInputError(
            f"{config.where}: layer_type {layer_type!r} was given, but all its layers turn alike; leave it out"
        )
    if not values and family.rope is not None:
        return _Rope(
            entries=ConfigSection(f"{config.where}: class default of rope_parameters", family.rope), layer=None
        )
    return _Rope(entries=ConfigSection(f"{config.where}: {key}" if key else config.where, values), layer=None)


def _layer_rope(config: ConfigSection, layers: Mapping[str, LayerDefault], layer_type: str | None) -> _Rope:
    """The dictionary of one layer type, from the new nested form or the older top-level names."""
    chosen = _choose(config.where, layer_type, tuple(layers))
    parameters, scaling = config.mapping("rope_parameters"), config.mapping("rope_scaling")
    flat = next((name for name, value in parameters.items() if not isinstance(value, Mapping | None)), None)
    if flat is not None:
        config.refuse(
            "rope_parameters", f"must hold one object for each of {', '.join(layers)}; {flat!r} stands beside them"
        )
    entries = dict(ConfigSection(f"{config.where}: rope_parameters", parameters).mapping(chosen))
    where = f"{config.where}: rope_parameters: {chosen}" if entries else config.where
    if scaling and layers[chosen].scaled:
        entries |= scaling
        where = f"{config.where}: rope_scaling"
    return _Rope(entries=ConfigSection(where, entries), layer=layers[chosen])


def _choose(where: str, layer_type: str | None, choices: tuple[str, ...]) -> str:
    # names of a file may hold anything, a line break included
    listed = ", ".join(name if name.isidentifier() else repr(name)[:60] for name in map(str, choices[:8]))
    if layer_type is None:
        raise InvalidInputError(f"{where}: its layer types turn differently; choose a layer_type out of {listed}")
    if layer_type not in choices:
        raise InvalidInputError(f"{where}: layer_type {layer_type!r} is unknown; choose one of {listed}")
    return layer_type


def _base(config: ConfigSection, family: Family, rope: _Rope) -> Fraction:
    default = family.base if rope.layer is None else rope.layer.base
    keys = family.base_keys
    if rope.layer is not None:
        keys = () if rope.layer.base_key is None else (rope.layer.base_key,)
    top = config.first(keys)
    if "rope_theta" in rope.entries.values:
        source, key = rope.entries, "rope_theta"
    elif top is not None:
        source, key = config, top
    elif default is None:
        config.refuse("rope_theta", "is missing, and no default is assumed for a model_type that is not known")
    else:
        # A base under a name that the class does not read would be passed over in silence.
        own_names = rope.layer is not None and rope.layer.base_key is not None
        if "rope_theta" in config.values and not own_names and config.number("rope_theta") != default:
            read = "a fixed base" if not keys else f"{keys[0]} (absent, so the class default)"
            config.refuse(
                "rope_theta",
                f"is {shown_value(config.values['rope_theta'])}, but this model class takes {read} {default}",
            )
        return Fraction(default)
    base = source.number(key)
    if not 1 < base < 1 << 128:
        source.refuse(key, f"must be larger than 1 and below 2^128, not {shown_value(source.values[key])}")
    if source is config:
        _must_agree(config, key, "rope_theta", skip=rope.layer is not None)
    return base


def _must_agree(config: ConfigSection, used: str, other: str, *, skip: bool = False) -> None:
    if skip or used == other or other not in config.values or config.number(other) == config.number(used):
        return
    config.refuse(
        other,
        f"is {shown_value(config.values[other])} but {used}, which this model class reads, is "
        f"{shown_value(config.values[used])}; remove the wrong one",
    )


def _head_dim(config: ConfigSection, family: Family) -> int:
    key = family.head_dim_key
    stated = key in config.values and config.values[key] is not None
    if stated and family.head_dim_stated:
        return config.count(key, MAX_CONFIG_HEAD_DIM)
    if key not in config.values and family.head_dim is not None:
        return family.head_dim
    if key != "head_dim":  # the sub-head of latent attention cannot be derived
        config.refuse(key, "is null; write the width of the rotating part of a head")
    hidden_key, heads_key = config.first(family.hidden_keys), config.first(family.heads_keys)
    if hidden_key is None or heads_key is None:
        missing = family.hidden_keys[0] if hidden_key is None else family.heads_keys[0]
        config.refuse(missing, "is missing, and head_dim cannot be derived without it")
    hidden, heads = config.count(hidden_key, 1 << 30), config.count(heads_key, 1 << 20)
    if hidden % heads:
        config.refuse(
            hidden_key,
            f"{hidden} is not a multiple of {heads_key} {heads}, so no head_dim follows; state it",
        )
    if hidden // heads > MAX_CONFIG_HEAD_DIM:
        config.refuse(hidden_key, f"{hidden} over {heads_key} {heads} is wider than {MAX_CONFIG_HEAD_DIM} for one head")
    if stated and config.count(key, MAX_CONFIG_HEAD_DIM) != hidden // heads:
        config.refuse(
            key, f"is {config.values[key]}, but this model class uses {hidden_key} / {heads_key} = {hidden // heads}"
        )
    return hidden // heads


def _rotary_width(config: ConfigSection, family: Family, rope: _Rope, head_dim: int) -> tuple[int, str]:
    """Rotated width, and how the fraction is written in messages."""
    if family.rotary_dim is not None:
        width = config.count("rotary_dim", head_dim) if "rotary_dim" in config.values else family.rotary_dim
        return _even_width(config, head_dim, width, f"{width}/{head_dim}")
    fraction, key = _fraction(config, family, rope, head_dim)
    shown = f"{fraction:g}"
    if not 0 < fraction <= 1:
        config.refuse(key, f"must be above 0 and at most 1, not {shown}")
    if fraction != 1 and family.fraction is None:
        config.refuse(key, f"is {shown}, but this model class always rotates the whole head; remove the key")
    # The same double product and the same truncation as the library, so that the widths agree to the last case.
    return _even_width(config, head_dim, int(head_dim * fraction), shown)


def _even_width(config: ConfigSection, head_dim: int, width: int, fraction: str) -> tuple[int, str]:
    if width < 2 or width % 2 or width > head_dim:
        config.refuse(
            "head_dim",
            f"{head_dim} with rotated fraction {fraction} gives a rotated width of {width}, which must be even and "
            f"from 2 to {head_dim}: coordinates turn in pairs, so change head_dim or the fraction",
        )
    return width, fraction


def _fraction(config: ConfigSection, family: Family, rope: _Rope, head_dim: int) -> tuple[float, str]:
    top = config.first(family.fraction_keys)
    if "partial_rotary_factor" in rope.entries.values:
        return _double(rope.entries.number("partial_rotary_factor")), "partial_rotary_factor"
    if top is not None:
        fraction = config.number(top)
        _must_agree(config, top, "partial_rotary_factor")
        return _double(fraction), top
    default = 1.0 if family.fraction is None else family.fraction
    if "partial_rotary_factor" in config.values and config.number("partial_rotary_factor") != Fraction(default):
        config.refuse(
            "partial_rotary_factor",
            f"is {shown_value(config.values['partial_rotary_factor'])}, but this model class reads "
            f"{family.fraction_keys[0]} (absent, so the class default {default:g}); rename the key",
        )
    if family.rotary_dim_gives_fraction and "rotary_dim" in config.values:
        return config.count("rotary_dim", head_dim) / head_dim, "rotary_dim"
    return default, family.fraction_keys[0]


def _angles(config: ConfigSection, rope: _Rope, rope_type: str, base: Fraction, width: int) -> Angles:
    def required(key: str) -> Fraction:
        if key not in rope.entries.values:
            rope.entries.refuse(key, f"is missing; rope type {rope_type} needs it")
        return rope.entries.number(key)

    if rope_type == "linear":
        return linear_angles(base, width, factor=required("factor"))
    if rope_type == "llama3":
        length_key = _LLAMA3_KEYS[-1]
        if length_key in config.values and length_key in rope.entries.values:
            inner, outer = rope.entries.number(length_key), config.number(length_key)
            if inner != outer:
                config.refuse(length_key, f"is {shown_value(outer)} at top level, {shown_value(inner)} inside")
        return llama3_angles(base, width, **{key: required(key) for key in _LLAMA3_KEYS})
    return default_angles(base, width)


def _double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _unsupported_type(where: str, rope_type: str) -> UnsupportedError:
    return UnsupportedError(
        f"{where}: rope type {rope_type[:60]!r} is not supported in this version; it reads {', '.join(ROPE_TYPES)}"
    )
