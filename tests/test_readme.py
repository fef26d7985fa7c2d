"""Every console block of the README shows what its command really prints (`...` stands for any lines left out)."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ropegeo.cli import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n\$ (ropegeo [^\n]*)\n(.*?)```", README, re.DOTALL)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def shown_in(expected: list[str], printed: list[str]) -> bool:
    """Whether the printed lines are the expected ones, `...` matching any number of lines."""
    if not expected:
        return not printed
    if expected[0].strip() == "...":
        return any(shown_in(expected[1:], printed[k:]) for k in range(len(printed) + 1))
    return bool(printed) and printed[0] == expected[0] and shown_in(expected[1:], printed[1:])


@pytest.mark.parametrize(("command", "output"), BLOCKS, ids=[command[:60] for command, _ in BLOCKS])
def test_console_block(
    command: str, output: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for earlier in [other for other, _ in BLOCKS[: BLOCKS.index((command, output))] if "--output" in other]:
        assert main(shlex.split(earlier)[1:]) == 0  # a block may read what one above it writes
        capsys.readouterr()
    assert main(shlex.split(command)[1:]) == 0
    printed = lines(capsys.readouterr().out)
    assert shown_in(lines(output), printed), "\n".join(printed)


def test_blocks_are_found() -> None:
    assert len(BLOCKS) >= 4


def test_the_comparison_can_fail() -> None:
    assert shown_in(["a", "...", "c"], ["a", "b", "b", "c"])
    assert not shown_in(["a", "...", "c"], ["a", "b", "d"])
    assert not shown_in(["a"], ["a", "b"])
