"""The public names: typed out, so that adding or losing one is a decision."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import ropegeo

NAMES = [
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
OBJECTS = [name for name in NAMES if name != "__version__"]
SOURCE = Path(ropegeo.__file__).read_text(encoding="utf-8")


def type_checking_imports() -> dict[str, set[str]]:
    """Module to names of the imports under TYPE_CHECKING."""
    (block,) = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.If)]
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    found: dict[str, set[str]] = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.module is not None
        assert all(alias.asname is None for alias in node.names)
        found.setdefault(node.module, set()).update(alias.name for alias in node.names)
    return found


def test_the_list_is_frozen() -> None:
    assert ropegeo.__all__ == NAMES
    assert dir(ropegeo) == sorted(NAMES)
    assert sorted(NAMES) == NAMES


@pytest.mark.parametrize("name", OBJECTS)
def test_every_name_is_importable_and_documented(name: str) -> None:
    thing = getattr(ropegeo, name)
    assert inspect.isclass(thing) or inspect.isfunction(thing)
    text = inspect.getdoc(thing)
    assert text
    assert len(text.split()) >= 5
    assert not text.startswith(f"{name}(")  # what dataclasses write when nobody else did


def test_star_import() -> None:
    namespace: dict[str, object] = {}
    exec("from ropegeo import *", namespace)  # noqa: S102 - that is what is tested
    assert set(NAMES) <= set(namespace)


def test_the_lazy_table_is_what_type_checkers_see() -> None:
    rooms = {room: set(names) for room, names in ropegeo._ROOMS.items()}
    assert rooms == type_checking_imports()
    assert sorted(name for names in ropegeo._ROOMS.values() for name in names) == sorted(OBJECTS)
    for room, names in rooms.items():
        module = importlib.import_module(room)
        for name in names:
            assert getattr(ropegeo, name) is getattr(module, name)


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="module 'ropegeo' has no attribute 'indx_head'"):
        _ = ropegeo.indx_head
    assert not hasattr(ropegeo, "__path_of_nothing__")
