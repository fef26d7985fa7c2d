"""The one place that imports torch and transformers, so that their absence is said once and well."""

from __future__ import annotations

import importlib
import os
from typing import Any

from ropegeo.errors import UnsupportedError


def import_models(call: str) -> tuple[Any, Any]:
    """The modules torch and transformers.

    Raises:
        UnsupportedError: either is missing; the message says which command installs them.
    """
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # it prints advice on standard error
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        return importlib.import_module("torch"), importlib.import_module("transformers")
    except ImportError as error:
        raise UnsupportedError(
            f"{call} needs torch and transformers ({error}); install them with: pip install 'ropegeo[models]'"
        ) from error
