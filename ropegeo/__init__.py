"""ropegeo: the geometry of rotary position embedding.

The way through: a `RopeSpectrum` turns, a `Head` carries weights, a `LogitProfile` says what it scores at each
distance, a `MarginCurve` says by how much it wins, a `DecayFit` by which law that falls. Names below are the public
API; they load on first use, so that `import ropegeo` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ropegeo._version import __version__

if TYPE_CHECKING:
    from ropegeo.asymptotics.bounds import dirichlet_bound, index_bound_as_printed
    from ropegeo.asymptotics.compare import Comparison, compare_decay
    from ropegeo.asymptotics.curve_input import read_curve
    from ropegeo.asymptotics.data import DecayData, curve_data, decay_data
    from ropegeo.asymptotics.fit import DecayFit, fit_decay
    from ropegeo.asymptotics.fitted_law import LawFit
    from ropegeo.claims import Claim, ClaimOutcome, claim_names, load_claim, run_claim
    from ropegeo.construct.built import BuiltHead
    from ropegeo.construct.files import load_head, save_head
    from ropegeo.construct.index import index_head, token_index_head
    from ropegeo.construct.recipe import Recipe
    from ropegeo.construct.reflexive import reflexive_head
    from ropegeo.construct.retrieval import retrieval_head
    from ropegeo.construct.solve import Solution, solve_letter, solve_number
    from ropegeo.construct.transformer import run_layer, run_stack
    from ropegeo.engine.first_return import first_in_interval
    from ropegeo.engine.margin import MarginCurve, MarginPoint, per_input
    from ropegeo.engine.one_plane_batch import one_plane_margins
    from ropegeo.engine.planes import best_index_plane, best_letter_plane
    from ropegeo.engine.profile_margin import plane_contributions
    from ropegeo.engine.recorded import RecordedMargins, recorded_margins
    from ropegeo.engine.routes import margin_curve, margin_curves, record_curve
    from ropegeo.engine.softmax import index_softmax_scale, retrieval_softmax_scale, softmax_scale, softmax_weight
    from ropegeo.engine.top_two import TopTwo, top_two
    from ropegeo.engine.trust import first_failing_length, tie_length
    from ropegeo.errors import (
        FileFormatError,
        IllDefinedTaskError,
        InvalidInputError,
        RopegeoError,
        SolverError,
        UnsupportedError,
    )
    from ropegeo.exact import ClosedForm, Enclosure, read_angle
    from ropegeo.heads import Head, LetterProfile, LogitProfile
    from ropegeo.limits.argmax import ArgmaxLimit, argmax_limit
    from ropegeo.limits.arithmetic import Arithmetic, emulated_logits
    from ropegeo.limits.bases import AdmissibleBases, admissible_bases
    from ropegeo.limits.emulated_head import EmulatedHead
    from ropegeo.limits.emulation import emulated_weights, first_light_length, first_wrong_length
    from ropegeo.limits.emulation_results import EmulatedLength, EmulatedWeightLength, EmulatedWeights
    from ropegeo.limits.formats import FormatLimit, format_limit, read_formats
    from ropegeo.limits.head_limit import head_limit
    from ropegeo.limits.letter_emulation import first_wrong_retrieval_length
    from ropegeo.limits.limit import Limit
    from ropegeo.limits.rules import Rule
    from ropegeo.limits.scale_search import find_scale
    from ropegeo.limits.scalings import compare_scalings, scaled_spectra
    from ropegeo.limits.scores import base_score, critical_plane, first_negative
    from ropegeo.limits.softmax import SoftmaxLimit, softmax_length
    from ropegeo.optimal.certificate import Certificate, Examination, certify, read_certificate
    from ropegeo.optimal.codes import OptimalCode, optimal_code
    from ropegeo.optimal.curve import OptimalCurve, optimal_curve
    from ropegeo.optimal.head import OptimalHead, optimal_head
    from ropegeo.spectrum import (
        RopeSpectrum,
        convert_projection,
        layout_permutation,
        load_rope,
        preset,
        preset_names,
        spectrum_from_config,
    )
    from ropegeo.tasks import Bigram

_ROOMS = {
    "ropegeo.asymptotics.bounds": ("dirichlet_bound", "index_bound_as_printed"),
    "ropegeo.asymptotics.compare": ("Comparison", "compare_decay"),
    "ropegeo.asymptotics.curve_input": ("read_curve",),
    "ropegeo.asymptotics.data": ("DecayData", "curve_data", "decay_data"),
    "ropegeo.asymptotics.fit": ("DecayFit", "fit_decay"),
    "ropegeo.asymptotics.fitted_law": ("LawFit",),
    "ropegeo.claims": ("Claim", "ClaimOutcome", "claim_names", "load_claim", "run_claim"),
    "ropegeo.construct.built": ("BuiltHead",),
    "ropegeo.construct.files": ("load_head", "save_head"),
    "ropegeo.construct.index": ("index_head", "token_index_head"),
    "ropegeo.construct.recipe": ("Recipe",),
    "ropegeo.construct.reflexive": ("reflexive_head",),
    "ropegeo.construct.retrieval": ("retrieval_head",),
    "ropegeo.construct.solve": ("Solution", "solve_letter", "solve_number"),
    "ropegeo.construct.transformer": ("run_layer", "run_stack"),
    "ropegeo.engine.first_return": ("first_in_interval",),
    "ropegeo.engine.margin": ("MarginCurve", "MarginPoint", "per_input"),
    "ropegeo.engine.one_plane_batch": ("one_plane_margins",),
    "ropegeo.engine.planes": ("best_index_plane", "best_letter_plane"),
    "ropegeo.engine.profile_margin": ("plane_contributions",),
    "ropegeo.engine.recorded": ("RecordedMargins", "recorded_margins"),
    "ropegeo.engine.routes": ("margin_curve", "margin_curves", "record_curve"),
    "ropegeo.engine.softmax": ("index_softmax_scale", "retrieval_softmax_scale", "softmax_scale", "softmax_weight"),
    "ropegeo.engine.top_two": ("TopTwo", "top_two"),
    "ropegeo.engine.trust": ("first_failing_length", "tie_length"),
    "ropegeo.errors": (
        "FileFormatError",
        "IllDefinedTaskError",
        "InvalidInputError",
        "RopegeoError",
        "SolverError",
        "UnsupportedError",
    ),
    "ropegeo.exact": ("ClosedForm", "Enclosure", "read_angle"),
    "ropegeo.heads": ("Head", "LetterProfile", "LogitProfile"),
    "ropegeo.limits.argmax": ("ArgmaxLimit", "argmax_limit"),
    "ropegeo.limits.arithmetic": ("Arithmetic", "emulated_logits"),
    "ropegeo.limits.bases": ("AdmissibleBases", "admissible_bases"),
    "ropegeo.limits.emulated_head": ("EmulatedHead",),
    "ropegeo.limits.emulation": ("emulated_weights", "first_light_length", "first_wrong_length"),
    "ropegeo.limits.emulation_results": ("EmulatedLength", "EmulatedWeightLength", "EmulatedWeights"),
    "ropegeo.limits.formats": ("FormatLimit", "format_limit", "read_formats"),
    "ropegeo.limits.head_limit": ("head_limit",),
    "ropegeo.limits.letter_emulation": ("first_wrong_retrieval_length",),
    "ropegeo.limits.limit": ("Limit",),
    "ropegeo.limits.rules": ("Rule",),
    "ropegeo.limits.scale_search": ("find_scale",),
    "ropegeo.limits.scalings": ("compare_scalings", "scaled_spectra"),
    "ropegeo.limits.scores": ("base_score", "critical_plane", "first_negative"),
    "ropegeo.limits.softmax": ("SoftmaxLimit", "softmax_length"),
    "ropegeo.optimal.certificate": ("Certificate", "Examination", "certify", "read_certificate"),
    "ropegeo.optimal.codes": ("OptimalCode", "optimal_code"),
    "ropegeo.optimal.curve": ("OptimalCurve", "optimal_curve"),
    "ropegeo.optimal.head": ("OptimalHead", "optimal_head"),
    "ropegeo.spectrum": (
        "RopeSpectrum",
        "convert_projection",
        "layout_permutation",
        "load_rope",
        "preset",
        "preset_names",
        "spectrum_from_config",
    ),
    "ropegeo.tasks": ("Bigram",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "AdmissibleBases",
    "ArgmaxLimit",
    "Arithmetic",
    "Bigram",
    "BuiltHead",
    "Certificate",
    "Claim",
    "ClaimOutcome",
    "ClosedForm",
    "Comparison",
    "DecayData",
    "DecayFit",
    "EmulatedHead",
    "EmulatedLength",
    "EmulatedWeightLength",
    "EmulatedWeights",
    "Enclosure",
    "Examination",
    "FileFormatError",
    "FormatLimit",
    "Head",
    "IllDefinedTaskError",
    "InvalidInputError",
    "LawFit",
    "LetterProfile",
    "Limit",
    "LogitProfile",
    "MarginCurve",
    "MarginPoint",
    "OptimalCode",
    "OptimalCurve",
    "OptimalHead",
    "Recipe",
    "RecordedMargins",
    "RopeSpectrum",
    "RopegeoError",
    "Rule",
    "SoftmaxLimit",
    "Solution",
    "SolverError",
    "TopTwo",
    "UnsupportedError",
    "__version__",
    "admissible_bases",
    "argmax_limit",
    "base_score",
    "best_index_plane",
    "best_letter_plane",
    "certify",
    "claim_names",
    "compare_decay",
    "compare_scalings",
    "convert_projection",
    "critical_plane",
    "curve_data",
    "decay_data",
    "dirichlet_bound",
    "emulated_logits",
    "emulated_weights",
    "find_scale",
    "first_failing_length",
    "first_in_interval",
    "first_light_length",
    "first_negative",
    "first_wrong_length",
    "first_wrong_retrieval_length",
    "fit_decay",
    "format_limit",
    "head_limit",
    "index_bound_as_printed",
    "index_head",
    "index_softmax_scale",
    "layout_permutation",
    "load_claim",
    "load_head",
    "load_rope",
    "margin_curve",
    "margin_curves",
    "one_plane_margins",
    "optimal_code",
    "optimal_curve",
    "optimal_head",
    "per_input",
    "plane_contributions",
    "preset",
    "preset_names",
    "read_angle",
    "read_certificate",
    "read_curve",
    "read_formats",
    "record_curve",
    "recorded_margins",
    "reflexive_head",
    "retrieval_head",
    "retrieval_softmax_scale",
    "run_claim",
    "run_layer",
    "run_stack",
    "save_head",
    "scaled_spectra",
    "softmax_length",
    "softmax_scale",
    "softmax_weight",
    "solve_letter",
    "solve_number",
    "spectrum_from_config",
    "tie_length",
    "token_index_head",
    "top_two",
]


def __getattr__(name: str) -> Any:
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'ropegeo' has no attribute {name!r}")
    return getattr(import_module(room), name)


def __dir__() -> list[str]:
    return sorted(__all__)
