"""Files: written whole or not at all, and never over another one unless asked."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from ropegeo.errors import InvalidInputError


def check_destination(path: Path, *, force: bool) -> None:
    """Refuse a destination that cannot or must not be written, before any work is done.

    Raises:
        InvalidInputError: missing folder, a folder in its place, or an existing file without `force`.
    """
    try:
        has_folder, is_folder, exists = path.parent.is_dir(), path.is_dir(), os.path.lexists(path)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"output {str(path)[:80]!r} cannot be used ({error}); choose another name") from error
    if not has_folder:
        raise InvalidInputError(f"output {str(path)!r}: the folder {str(path.parent)!r} does not exist; make it first")
    if is_folder:
        raise InvalidInputError(f"output {str(path)!r} is a folder; give a file name")
    if exists and not force:
        raise InvalidInputError(f"output {str(path)!r} exists; choose another name or pass --force")


def write_atomically(contents: Sequence[tuple[Path, bytes]], *, force: bool) -> None:
    """Write files so that a reader sees all of each or none of it, and none at all if one cannot be written.

    All bytes go to temporary files beside their destinations first; then each is renamed (with `force`) or linked
    (without, so that a file made in the meantime is not overwritten).

    Raises:
        InvalidInputError: as `check_destination`, or the system refuses.
    """
    for path, _ in contents:
        check_destination(path, force=force)
    staged: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for path, content in contents:
            temporary = path.with_name(f".ropegeo-{secrets.token_hex(8)}.tmp")
            staged.append((temporary, path))
            with temporary.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        for temporary, path in staged:
            if force:
                temporary.replace(path)
            else:
                _rename_without_replacing(temporary, path)
    except FileExistsError as error:
        raise InvalidInputError(f"output {str(path)!r} exists; choose another name or pass --force") from error
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise InvalidInputError(
            f"output {str(path)!r} cannot be written ({getattr(error, 'strerror', None) or error}); choose another"
        ) from error
    finally:
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)


def _rename_without_replacing(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: the check above is the best there is
        temporary.replace(path)
