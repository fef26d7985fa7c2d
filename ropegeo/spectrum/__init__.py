"""RoPE spectra: exact angles, layouts, phases, presets and the configuration files they are read from."""

from ropegeo.spectrum.hf_config import spectrum_from_config
from ropegeo.spectrum.layout import Layout, convert_projection, layout_permutation
from ropegeo.spectrum.presets import load_rope, preset, preset_names
from ropegeo.spectrum.rope import RopeSpectrum

__all__ = [
    "Layout",
    "RopeSpectrum",
    "convert_projection",
    "layout_permutation",
    "load_rope",
    "preset",
    "preset_names",
    "spectrum_from_config",
]
