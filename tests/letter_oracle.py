"""Letter heads in plain Python, as docs/MATHEMATICS.md writes them; nothing of ours is imported."""

from __future__ import annotations

import math


class Brute:
    """Logits and extremes as docs/MATHEMATICS.md writes them, in plain Python."""

    def __init__(
        self,
        letters: int,
        planes: list[tuple[float, float, int]],
        centre: float = 0.0,
        own: bool = False,
    ) -> None:
        self.letters, self.planes, self.centre, self.own = letters, planes, centre, own

    def logit(self, shift: int, d: int, centre: float | None = None) -> float:
        c = self.centre if centre is None else centre
        return math.fsum(
            w * math.cos(2 * math.pi * m * shift / self.letters + (d - c) * theta) for theta, w, m in self.planes
        )

    def margins(self, n: int) -> list[float]:
        """Of every single-answer input that may be worst: the strongest rival at every other distance."""
        shifts = range(1, self.letters)
        targets = [(D, self.centre) for D in range(1 if self.own else n)] + ([(0, 0.0)] if self.centre else [])
        return [
            self.logit(0, D, c) - max(self.logit(s, d, c) for d in range(n) if d != D for s in shifts)
            for D, c in targets
        ]

    def best(self, n: int) -> float:
        """One rival, every other position an answer."""
        shifts = range(1, self.letters)
        queries = [(self.centre, range(1 if self.own else 0, n))] + ([(0.0, range(1, n))] if self.centre else [])
        return max(
            max(self.logit(0, answer, c) for answer in range(n) if answer != d)
            - min(self.logit(s, d, c) for s in shifts)
            for c, rivals in queries
            for d in rivals
        )

    def log_sum(self, n: int, beta: float) -> float:
        """The largest sum over one rival token, at all distances where it may stand."""
        found = []
        for answer, c in [(d, self.centre) for d in range(n)] + ([(0, 0.0)] if self.centre else []):
            match = self.logit(0, answer, c)
            spots = [[d for d in range(n) if d not in (answer, 0)]]
            if answer:
                spots.append(list(range(answer)))
            for s in range(1, self.letters):
                found += [sum(math.exp(beta * (self.logit(s, d, c) - match)) for d in where) for where in spots]
        return math.log(max(found))
