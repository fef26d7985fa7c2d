"""Heads and their logit profiles."""

from ropegeo.heads.head import Head
from ropegeo.heads.profile import LOGIT_ERROR, LetterProfile, LogitProfile

__all__ = ["LOGIT_ERROR", "Head", "LetterProfile", "LogitProfile"]
