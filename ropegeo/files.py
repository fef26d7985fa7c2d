"""Files: written whole or not at all, and never over another one unless asked."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from ropegeo.errors import InvalidInputError


def check_destination(path: Path, *, force: bool) -> None:
    """Refuse a destination that cannot or must not be written, before any work is done.

    Raises:
        InvalidInputError: missing folder, a folder in its place, or an existing file without `force`.
    """
    try:
        if not path.parent.is_dir():
            raise InvalidInputError(
                f"output {str(path)!r}: the folder {str(path.parent)!r} does not exist; make it first"
            )
        if path.is_dir():
            raise InvalidInputError(f"output {str(path)!r} is a folder; give a file name")
        if not force and os.path.lexists(path):
            raise InvalidInputError(f"output {str(path)!r} exists; choose another name or pass --force")
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"output {str(path)[:80]!r} cannot be used ({error})") from error


def write_atomically(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file so that a reader sees all of it or none of it.

    The bytes go to a temporary file in the same folder, which is then renamed (with `force`) or linked (without, so
    that a file made in the meantime is not overwritten).

    Raises:
        InvalidInputError: as `check_destination`, or the system refuses.
    """
    check_destination(path, force=force)
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            with temporary.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            if force:
                temporary.replace(path)
            else:
                _rename_without_replacing(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError as error:
        raise InvalidInputError(f"output {str(path)!r} exists; choose another name or pass --force") from error
    except OSError as error:
        raise InvalidInputError(f"output {str(path)!r} cannot be written ({error.strerror or error})") from error


def _rename_without_replacing(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: the check above is the best there is
        temporary.replace(path)
