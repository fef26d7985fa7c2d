"""Head files: what is written is read back; what was not written by ropegeo, or was altered, is refused in one line."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from ropegeo.construct.built import BuiltHead
from ropegeo.construct.files import METADATA_KEY, SCHEMA, head_bytes, head_matrices, load_head, save_head
from ropegeo.construct.index import index_head, token_index_head
from ropegeo.construct.reflexive import reflexive_head
from ropegeo.construct.retrieval import retrieval_head
from ropegeo.errors import FileFormatError, InvalidInputError
from ropegeo.files import write_atomically
from ropegeo.heads import LetterProfile
from ropegeo.spectrum import RopeSpectrum, preset
from ropegeo.tasks import Bigram

PLANES = {"planes": (0, 3, 63), "weights": (1, 2, 0.25), "beta": 3.7}
MAKERS: dict[str, Callable[[RopeSpectrum], BuiltHead]] = {
    "index": lambda spectrum: index_head(spectrum, offset=3, **PLANES),  # type: ignore[arg-type]
    "index far": lambda spectrum: index_head(spectrum, offset=10**40, directions=[1j]),
    "token_index": lambda spectrum: token_index_head(spectrum, letters=("a", "é", "λ"), integers=(1, 4, 10**20)),
    "retrieval": lambda spectrum: retrieval_head(spectrum, letters="abc", integers=(1, 3), planes=(40,)),
    "centred": lambda spectrum: retrieval_head(spectrum, letters="abc", centre_length=17, **PLANES),  # type: ignore[arg-type]
    "reflexive": lambda spectrum: reflexive_head(spectrum, **PLANES),  # type: ignore[arg-type]
    "symbolic": lambda spectrum: reflexive_head(spectrum, symbolic=True, directions=[0.6 - 0.8j]),
}
SMALL = index_head(RopeSpectrum.from_angle("1"), offset=3, letters=("a", "b"), beta=2.5)
CONTENT = head_bytes(SMALL)


def same(first: BuiltHead, second: BuiltHead, tolerance: float = 1e-12) -> None:
    """Equal matrices and profiles; `tolerance` per unit of beta."""
    for name, matrix in head_matrices(first).items():
        assert np.abs(head_matrices(second)[name] - matrix).max() <= tolerance * np.abs(matrix).max(), name
    one, two = first.profile, second.profile
    assert type(one) is type(two)
    distances = np.arange(64)
    for shift in (0, 1):
        a, b = (p.logit(shift, distances) if isinstance(p, LetterProfile) else p for p in (one, two))
        if isinstance(a, np.ndarray):
            assert np.abs(a - b).max() <= tolerance * one.weight  # type: ignore[operator]
        else:
            assert np.abs(a.coefficients - b.coefficients).max() <= tolerance * one.weight  # type: ignore[union-attr]
            assert a.origin == b.origin  # type: ignore[union-attr]
    assert first.recipe.spectrum.layout == second.recipe.spectrum.layout


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("mode", list(MAKERS))
def test_round_trip(mode: str, layout: Any, tmp_path: Path) -> None:
    """The same head, the same recipe, and the same bytes when written again."""
    built = MAKERS[mode](preset("paper").with_layout(layout))
    path = tmp_path / "head.safetensors"
    save_head(built, path)
    found = load_head(path)
    same(built, found)
    assert found.recipe.to_dict() == built.recipe.to_dict()
    assert found.tokens == built.tokens
    assert head_bytes(found) == path.read_bytes()
    assert load_head(str(path)).recipe.mode == built.recipe.mode


def test_the_metadata_reads_without_ropegeo() -> None:
    """Any safetensors reader finds matrices of float64 and a JSON text."""
    size = int.from_bytes(CONTENT[:8], "little")
    metadata = json.loads(json.loads(CONTENT[8 : 8 + size])["__metadata__"][METADATA_KEY])
    assert (metadata["schema"], metadata["offset"], metadata["beta"], metadata["layout"]) == (SCHEMA, 3, 2.5, "half")
    tensors = load(CONTENT)
    assert {name: tensor.shape for name, tensor in tensors.items()} == {
        "w_q": (2, 3),
        "w_k": (2, 3),
        "w_v": (3, 3),
        "w_o": (3, 3),
        "embedding": (2, 3),
        "unembedding": (2, 3),
    }
    assert {str(tensor.dtype) for tensor in tensors.values()} == {"float64"}


def test_a_head_on_some_bigrams_is_saved_or_refused(tmp_path: Path) -> None:
    """What `save_head` accepts, `load_head` reads."""
    built = retrieval_head(RopeSpectrum.from_angle("0.001"), letters="ab", tokens=[Bigram("a", 1), Bigram("b", "a")])
    path = tmp_path / "head.safetensors"
    try:
        save_head(built, path)
    except InvalidInputError:
        assert not path.exists()
    else:
        same(built, load_head(path))


# ---- hostile files ----


def refused(content: bytes, folder: Path) -> str:
    """The one-line message with which a file of these bytes is refused."""
    path = folder / "hostile.safetensors"
    path.write_bytes(content)
    with pytest.raises((FileFormatError, InvalidInputError)) as caught:
        load_head(path)
    message = str(caught.value)
    assert "hostile.safetensors" in message
    return message


def with_metadata(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The small file with its metadata changed in place."""
    size = int.from_bytes(CONTENT[:8], "little")
    metadata = json.loads(json.loads(CONTENT[8 : 8 + size])["__metadata__"][METADATA_KEY])
    change(metadata)
    return bytes(save(load(CONTENT), metadata={METADATA_KEY: json.dumps(metadata)}))


@pytest.mark.parametrize("size", sorted({*range(40), *range(40, len(CONTENT), 37), len(CONTENT) - 1}))
def test_truncated(size: int, tmp_path: Path) -> None:
    assert "safetensors" in refused(CONTENT[:size], tmp_path)


@settings(max_examples=120)
@given(flips=st.lists(st.tuples(st.integers(0, len(CONTENT) - 1), st.integers(1, 255)), min_size=1, max_size=3))
def test_flipped_bytes(flips: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same head, or a refusal; never another error, never another head."""
    content = bytearray(CONTENT)
    for at, mask in flips:
        content[at] ^= mask
    path = tmp_path_factory.mktemp("flips") / "flipped.safetensors"
    path.write_bytes(content)
    try:
        found = load_head(path)
    except (FileFormatError, InvalidInputError):
        return
    same(SMALL, found, 1e-11)


DEEP = "[" * 100_000
HUGE = "9" * 5000


def recipe(**values: Any) -> bytes:
    return with_metadata(lambda metadata: metadata.update(values))


def spectrum(**values: Any) -> bytes:
    return with_metadata(lambda metadata: metadata["spectrum"].update(values))


def raw_metadata(text: str) -> bytes:
    return bytes(save(load(CONTENT), metadata={METADATA_KEY: text}))


def altered(name: str, change: Callable[[Any], Any]) -> bytes:
    """The small file with one matrix changed and the metadata kept."""
    size = int.from_bytes(CONTENT[:8], "little")
    tensors = load(CONTENT)
    tensors[name] = np.ascontiguousarray(change(tensors[name].copy()))
    return bytes(save(tensors, metadata=json.loads(CONTENT[8 : 8 + size])["__metadata__"]))


def relabelled(kind: str, per_float64: int) -> bytes:
    """The small file with w_q said to be of another type."""
    size = int.from_bytes(CONTENT[:8], "little")
    header = json.loads(CONTENT[8 : 8 + size])
    header["w_q"] |= {"dtype": kind, "shape": [2, 3 * per_float64]}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + CONTENT[8 + size :]


def bumped(matrix: Any) -> Any:
    matrix.flat[-2] += 1e-6
    return matrix


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "cannot be read as safetensors"),
    "text": (lambda: b"no safetensors at all, but long enough to have a header", "cannot be read as safetensors"),
    "huge header": (lambda: b"\xff" * 8 + CONTENT[8:], "cannot be read as safetensors"),
    "foreign": (lambda: bytes(save({"weight": np.zeros(3)})), "no ropegeo metadata"),
    "other metadata": (lambda: bytes(save({"x": np.zeros(3)}, metadata={"format": "pt"})), "no ropegeo metadata"),
    "not JSON": (lambda: raw_metadata("{oops"), "not JSON"),
    "deep JSON": (lambda: raw_metadata(DEEP), "not JSON"),
    "deep field": (lambda: raw_metadata('{"schema": "ropegeo.head/1", "beta": ' + DEEP), "not JSON"),
    "5000 digits": (lambda: raw_metadata('{"schema": "ropegeo.head/1", "beta": ' + HUGE + "}"), "not JSON"),
    "JSON list": (lambda: raw_metadata("[]"), "expected schema"),
    "other schema": (lambda: with_metadata(lambda m: m.update(schema="ropegeo.head/2")), "expected schema"),
    "only a schema": (lambda: raw_metadata('{"schema": "ropegeo.head/1"}'), "recipe: "),
    "no beta": (lambda: with_metadata(lambda m: m.pop("beta")), "beta"),
    "beta nan": (lambda: recipe(beta=float("nan")), "beta nan"),
    "beta inf": (lambda: recipe(beta=float("inf")), "beta inf"),
    "beta 0": (lambda: recipe(beta=0), "beta 0.0"),
    "beta negative": (lambda: recipe(beta=-1), "beta -1.0"),
    "beta 1e308": (lambda: recipe(beta=1e308), ""),
    "beta 10^400": (lambda: recipe(beta=10**400), "recipe: "),
    "beta text": (lambda: recipe(beta="x"), "recipe: "),
    "beta null": (lambda: recipe(beta=None), "recipe: "),
    "beta other": (lambda: recipe(beta=2.6), "altered"),
    "mode": (lambda: recipe(mode="magic"), "recipe: "),
    "mode list": (lambda: recipe(mode=["index"]), ""),
    "mode other": (lambda: recipe(mode="retrieval", letters=["a", "b"]), "a retrieval head has no offset"),
    "plane": (lambda: recipe(planes=[1]), "plane 1 is out of range"),
    "plane -1": (lambda: recipe(planes=[-1]), "plane -1 is out of range"),
    "plane huge": (lambda: recipe(planes=[10**30]), "is out of range"),
    "plane float": (lambda: recipe(planes=[0.0]), "is not an integer"),
    "plane true": (lambda: recipe(planes=[False]), "is not an integer"),
    "planes": (lambda: recipe(planes=0), "recipe: "),
    "no planes": (lambda: recipe(planes=[]), "planes"),
    "weights": (lambda: recipe(weights=[1.0, 2.0]), "2 weights for 1 planes"),
    "weight nan": (lambda: recipe(weights=[float("nan")]), "finite"),
    "weight 0": (lambda: recipe(weights=[0.0]), "must not all be zero"),
    "weight sum": (lambda: recipe(planes=[0], weights=[1e308] * 2), ""),
    "10^9 letters": (lambda: recipe(letters=10**9), "recipe: "),
    "many letters": (lambda: recipe(letters=["a"] * 5000), "more than 4096"),
    "no letters": (lambda: recipe(letters=[]), "at least one letter"),
    "same letters": (lambda: recipe(letters=["a", "a"]), "differ from each other"),
    "letter number": (lambda: recipe(letters=["a", 1]), "is not a text"),
    "one letter more": (lambda: recipe(letters=["a", "b", "c"]), "w_q"),
    "integer 0": (lambda: recipe(integers=["0"]), "start at 1"),
    "integer float": (lambda: recipe(integers=[1.0]), "is not an integer"),
    "integer digits": (lambda: recipe(integers=[HUGE]), "recipe: "),
    "offset digits": (lambda: recipe(offset=HUGE), "recipe: "),
    "offset 4000 digits": (lambda: recipe(offset="9" * 4000), "altered"),
    "offset negative": (lambda: recipe(offset="-3"), "offset -3"),
    "offset float": (lambda: recipe(offset=3.0), "is not an integer"),
    "offset other": (lambda: recipe(offset="4"), "altered"),
    "bigram": (lambda: recipe(bigrams=[["a", "z"]]), "bigrams"),
    "bigram shape": (lambda: recipe(bigrams=["abc"]), "recipe: "),
    "bigram null": (lambda: recipe(bigrams=None), "recipe: "),
    "bigram right": (lambda: recipe(bigrams=[["a", [1]]]), "recipe: "),
    "many bigrams": (lambda: recipe(bigrams=[["a", "b"]] * 5000), "more than 4096"),
    "centre": (lambda: recipe(centre_length=-(10**30)), "centre length"),
    "centre text": (lambda: recipe(centre_length="3"), "is not an integer"),
    "direction": (lambda: recipe(directions=[[3, 4]]), "modulus 1"),
    "direction nan": (lambda: recipe(directions=[[float("nan"), 0]]), "modulus 1"),
    "direction other": (lambda: recipe(directions=[[0.6, 0.8]]), "altered"),
    "directions": (lambda: recipe(directions=[[1, 0, 0]]), "recipe: "),
    "no spectrum": (lambda: recipe(spectrum=None), "spectrum: expected schema"),
    "code": (lambda: spectrum(angles=["__import__('os').system('true')"]), "cannot read"),
    "angle other": (lambda: spectrum(angles=["2"]), "altered"),
    "angle 0": (lambda: spectrum(angles=["0"]), "angle of plane 0"),
    "angle huge": (lambda: spectrum(angles=["9^99999999"]), "spectrum: "),
    "angles": (lambda: spectrum(angles=["1"] * 5000), "at most 4096"),
    "angle number": (lambda: spectrum(angles=[1]), "texts"),
    "no angles": (lambda: spectrum(angles=[]), "rotary_dim 0"),
    "head_dim": (lambda: spectrum(head_dim=10**30), "head_dim"),
    "head_dim text": (lambda: spectrum(head_dim="2"), "is not an integer"),
    "head_dim other": (lambda: spectrum(head_dim=4), "w_q"),
    "layout": (lambda: spectrum(layout="diagonal"), "layout 'diagonal'"),
    "factor": (lambda: spectrum(attention_factor=float("inf")), "attention_factor"),
    "factor -1": (lambda: spectrum(attention_factor=-1), "attention_factor"),
    "int64": (lambda: relabelled("I64", 1), "w_q is missing or not (2, 3) of float64"),
    "bfloat16": (lambda: relabelled("BF16", 4), ""),
    "float8": (lambda: relabelled("F8_E4M3", 8), ""),
    "float32": (lambda: altered("w_k", lambda m: m.astype(np.float32)), "w_k is missing or not (2, 3) of float64"),
    "transposed": (lambda: altered("w_q", lambda m: m.T), "w_q is missing or not (2, 3)"),
    "nan": (lambda: altered("w_q", lambda m: m * np.nan), "altered"),
    "inf": (lambda: altered("w_o", lambda m: np.where(m > 0, np.inf, m)), "altered"),
}


@pytest.mark.parametrize("name", ["w_q", "w_k", "w_v", "w_o", "embedding", "unembedding"])
def test_altered_by_a_millionth(name: str, tmp_path: Path) -> None:
    assert f"{name} is not the one its recipe gives; the file was altered" in refused(altered(name, bumped), tmp_path)


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile(name: str, tmp_path: Path) -> None:
    make, message = HOSTILE[name]
    assert message in refused(make(), tmp_path)


@pytest.mark.parametrize(
    ("mode", "changes"),
    [
        ("reflexive", {"offset": 5}),  # would aim at 5
        ("symbolic", {"centre_length": 9}),  # the profile would be centred, the matrices are not
        ("retrieval", {"offset": 7}),
        ("token_index", {"integers": []}),
        ("token_index", {"offset": 2}),
    ],
)
def test_a_recipe_that_its_mode_does_not_have(mode: str, changes: dict[str, Any], tmp_path: Path) -> None:
    """A field that belongs to another mode is refused, or changes nothing that the file's head is."""
    built = MAKERS[mode](preset("paper"))
    data = built.recipe.to_dict() | changes
    tensors = {name: np.ascontiguousarray(matrix) for name, matrix in head_matrices(built).items()}
    path = tmp_path / "head.safetensors"
    path.write_bytes(bytes(save(tensors, metadata={METADATA_KEY: json.dumps(data | {"schema": SCHEMA})})))
    try:
        found = load_head(path)
    except FileFormatError:
        return
    same(built, found)


@pytest.mark.parametrize("mode", ["retrieval", "reflexive", "symbolic"])
def test_an_altered_angle_that_no_matrix_shows(mode: str, tmp_path: Path) -> None:
    """These matrices do not depend on the angle, but every margin does: the angles must agree with `inv_freq`."""
    content = head_bytes(MAKERS[mode](preset("paper")))
    used, other = {
        "retrieval": (b"(-80/128)", b"(-81/128)"),
        "reflexive": (b"(-6/128)", b"(-7/128)"),
        "symbolic": (b"(-0/128)", b"(-1/128)"),
    }[mode]
    assert used in content
    assert refused(content.replace(used, other), tmp_path)


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.safetensors", tmp_path, tmp_path / ("n" * 5000), tmp_path / "a\0b"):
        with pytest.raises((InvalidInputError, FileFormatError), match="head file"):
            load_head(path)


# ---- writing: whole or not at all ----


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "head.safetensors"
    path.write_bytes(b"old")
    with pytest.raises(InvalidInputError, match=r"exists; choose another name or pass --force"):
        save_head(SMALL, path)
    assert path.read_bytes() == b"old"
    save_head(SMALL, path, force=True)
    assert path.read_bytes() == CONTENT
    assert os.listdir(tmp_path) == ["head.safetensors"]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_leaves_nothing(code: int, force: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: no temporary file, the old content where there was one."""
    path = tmp_path / "head.safetensors"
    if force:
        path.write_bytes(b"old")

    def full(_descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInputError, match=f"cannot be written .{os.strerror(code)}") as caught:
        save_head(SMALL, path, force=force)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == (["head.safetensors"] if force else [])
    assert not force or path.read_bytes() == b"old"


def test_a_file_made_in_the_meantime_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "head.safetensors"
    real = os.fsync

    def meanwhile(descriptor: int) -> None:
        path.write_bytes(b"other")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(InvalidInputError, match="exists"):
        save_head(SMALL, path)
    assert path.read_bytes() == b"other"
    assert os.listdir(tmp_path) == ["head.safetensors"]


def test_destinations(tmp_path: Path) -> None:
    """A missing folder, a folder, a dangling link, and names that no file system takes: one plain sentence each."""
    (tmp_path / "link.x").symlink_to(tmp_path / "nowhere")
    before = sorted(os.listdir(tmp_path))
    for path, message in (
        (tmp_path / "missing" / "h.x", "does not exist; make it first"),
        (tmp_path, "is a folder; give a file name"),
        (tmp_path / "link.x", "exists; choose another name"),
        (tmp_path / ("n" * 5000), "output"),
        (tmp_path / "a\0b", "output"),
    ):
        with pytest.raises(InvalidInputError, match=message) as caught:
            write_atomically([(path, b"new")], force=False)
        assert str(caught.value).count("output") == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_a_link_is_followed_or_replaced_but_its_target_not_damaged(tmp_path: Path) -> None:
    target, link = tmp_path / "target.x", tmp_path / "link.x"
    target.write_bytes(b"target")
    link.symlink_to(target)
    with pytest.raises(InvalidInputError, match="exists"):
        write_atomically([(link, b"new")], force=False)
    write_atomically([(link, b"new")], force=True)
    assert link.read_bytes() == b"new"
    assert target.read_bytes() in (b"target", b"new")
    assert sorted(os.listdir(tmp_path)) == ["link.x", "target.x"]
