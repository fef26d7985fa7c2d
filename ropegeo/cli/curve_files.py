"""The files of `ropegeo curve`: CSV and npz."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ropegeo.engine.margin import MarginCurve
from ropegeo.exact import Enclosure

COLUMNS = ("length", "margin", "best", "worst", "at", "abs_error", "status", "method")


def csv_text(curve: MarginCurve, digits: int) -> str:
    """CSV with the columns `COLUMNS`; margins are written with all certified digits, lengths as exact integers.

    A margin of status `bound` is the upper bound itself, and so is its `abs_error`: the margin lies between 0 and it.
    """

    @cache  # a staircase hands out one value for many lengths
    def cell(value: Enclosure | None) -> str:
        return "" if value is None else value.digits(digits) or repr(float(value))

    error = cache(lambda value: repr(value.abs_error))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for point in curve.points:
        values = [cell(value) for value in (point.margin, point.best, point.worst)]
        writer.writerow([point.length, *values, point.at, error(point.margin), point.status, point.method])
    return stream.getvalue()


def npz_bytes(curve: MarginCurve, about: dict[str, Any]) -> bytes:
    """An npz archive without pickles: one array per column; what the JSON says besides its rows is text in `metadata`.

    `length` and `at` are int64, or texts where one does not fit; `margin`, `best` and `worst` are the nearest doubles,
    NaN where there is none; `abs_error`, `best_abs_error` and `worst_abs_error` bound theirs; `status` and `method` are
    texts.
    """
    points = curve.points
    enclosures = {name: [getattr(point, name) for point in points] for name in ("margin", "best", "worst")}
    number = cache(lambda value: (np.nan, np.nan) if value is None else (float(value), value.abs_error))
    columns = {name: np.array([number(value) for value in values]) for name, values in enclosures.items()}
    stream = io.BytesIO()
    np.savez_compressed(
        stream,
        allow_pickle=False,
        length=_integers([point.length for point in points]),
        at=_integers([point.at for point in points]),
        margin=columns["margin"][:, 0],
        abs_error=columns["margin"][:, 1],
        best=columns["best"][:, 0],
        best_abs_error=columns["best"][:, 1],
        worst=columns["worst"][:, 0],
        worst_abs_error=columns["worst"][:, 1],
        status=np.array([point.status for point in points]),
        method=np.array([point.method for point in points]),
        metadata=np.array(json.dumps({**_without_rows(curve), **about})),
    )
    return stream.getvalue()


def _without_rows(curve: MarginCurve) -> dict[str, Any]:
    described = replace(curve, points=()).to_dict()
    del described["rows"]
    return described


def _integers(values: list[int]) -> Any:
    if all(-(2**63) <= value < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    return np.array([str(value) for value in values])
