"""The routes to a margin, once: what each is called, shown as, and for. Nothing is imported, so that `--help` may."""

from __future__ import annotations

ROUTES: dict[str, str] = {
    "continued_fraction": "cont. fraction",
    "closed_form": "closed form",
    "first_return": "first return",
    "lattice": "lattice",
    "pruned": "pruned",
    "streamed": "streamed",
    "return_bound": "upper bound",
    "definition": "definition",
}
"""Name of each route, and how a table shows it.

* `continued_fraction`: index, one plane, any length.
* `closed_form`, `first_return`: letters, or a phase, one plane, any length.
* `lattice`: any index or phased head on few planes, any length.
* `pruned`: the same on many planes; blocks that hold no step are skipped.
* `streamed`: any head, every distance.
* `return_bound`: index, a certified upper bound where nothing else reaches.
* `definition`: any head, every distance, slowly, as the formulas are written.
"""

AUTO = "auto"
SEARCHES = ("streamed", "pruned", "lattice", "definition")
LETTER_ROUTES = ("closed_form", "first_return", "streamed", "definition")
BOUND = "return_bound"
"""Its margins are certified upper bounds: the enclosure reaches from 0 to the bound."""
