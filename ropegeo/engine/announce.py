"""Who is told when a kernel begins to be compiled. Nothing is imported, so that asking to be told loads no kernel."""

from __future__ import annotations

from collections.abc import Callable

listeners: list[Callable[[], None]] = []
"""Called, each, whenever numba begins to compile one of the engine's kernels."""
