r"""Real numbers in closed form: exact arithmetic, exact equality, certified enclosures.

A RoPE angle is `base**(-2k/r)`, sometimes rescaled; a theorist's angle is `2*pi/5` or `pi*(sqrt(5)-1)`. All of
them live in the field of fractions of

    sum of  rational * prime_1**e_1 * ... * prime_m**e_m * pi**f       (e_i and f rational)

and `ClosedForm` computes in it without rounding. Two facts make equality decidable:

* products of rational prime powers with exponents in [0, 1) are linearly independent over the rationals
  (A. S. Besicovitch, J. London Math. Soc. 15 (1940) 3-6), and they are algebraic;
* pi is transcendental (Lindemann 1882), so different powers of pi are independent over the algebraic numbers.

Hence a sum in normal form is zero only if it has no terms, and a number is a rational multiple of pi only if
numerator and pi times denominator are proportional term by term. That is how ropegeo knows, rather than
guesses, whether an angle divides a turn.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from ropegeo.errors import InvalidInputError
from ropegeo.exact import balls

Monomial: TypeAlias = tuple[tuple[int, Fraction], ...]
"""Sorted (generator, exponent) pairs: a prime with exponent in (0, 1), or `PI_KEY` with any exponent."""

Sum: TypeAlias = dict[Monomial, Fraction]

PI_KEY = 0
MAX_TERMS = 64
MAX_BITS = 14_000  # below 4,300 digits, which is what Python converts to text
_ONE: Sum = {(): Fraction(1)}


class ClosedForm:
    """An exact real number: a quotient of two sums of rational multiples of prime powers and powers of pi.

    Build one with `ClosedForm.of`, `ClosedForm.pi` or `parse_closed_form`, and combine them with `+ - * /` and
    `** Fraction`. Instances are immutable; equality and sign are exact.

    Example:
        >>> angle = ClosedForm.of(10000) ** Fraction(-2, 128)
        >>> float(angle)
        0.8659643233600653
        >>> angle**64 == ClosedForm.of(Fraction(1, 10000))
        True
        >>> (2 * ClosedForm.pi() / 5).rational_turn()
        Fraction(1, 5)
    """

    __slots__ = ("_denominator", "_float", "_numerator")

    def __init__(self, numerator: Sum, denominator: Sum | None = None) -> None:
        """Internal: both sums must be in normal form. Use `of`, `pi` and arithmetic instead."""
        bottom = _ONE if denominator is None else denominator
        if not bottom:
            raise InvalidInputError("closed form: division by zero")
        if len(bottom) == 1:  # A single term divides exactly, so the denominator becomes 1.
            numerator, bottom = _times(numerator, _inverse(bottom)), _ONE
        if len(numerator) > MAX_TERMS or len(bottom) > MAX_TERMS:
            raise InvalidInputError(f"closed form: more than {MAX_TERMS} terms; write it shorter")
        for coefficient in (*numerator.values(), *bottom.values()):
            if _bits(coefficient) > MAX_BITS:
                raise InvalidInputError(f"closed form: a number needs more than {MAX_BITS} bits")
        self._numerator = numerator
        self._denominator = bottom
        self._float: float | None = None

    @classmethod
    def of(cls, value: ClosedForm | Fraction | int) -> ClosedForm:
        """The exact form of an integer or fraction (a `ClosedForm` passes through)."""
        if isinstance(value, ClosedForm):
            return value
        fraction = Fraction(value)
        return cls({(): fraction} if fraction else {})

    @classmethod
    def pi(cls) -> ClosedForm:
        """The number pi."""
        return cls({((PI_KEY, Fraction(1)),): Fraction(1)})

    def __add__(self, other: ClosedForm | Fraction | int) -> ClosedForm:
        right = ClosedForm.of(other)
        top = _plus(
            _times(self._numerator, right._denominator),
            _times(right._numerator, self._denominator),
        )
        return ClosedForm(top, _times(self._denominator, right._denominator))

    __radd__ = __add__

    def __neg__(self) -> ClosedForm:
        return ClosedForm({m: -c for m, c in self._numerator.items()}, self._denominator)

    def __sub__(self, other: ClosedForm | Fraction | int) -> ClosedForm:
        return self + -ClosedForm.of(other)

    def __rsub__(self, other: Fraction | int) -> ClosedForm:
        return ClosedForm.of(other) - self

    def __mul__(self, other: ClosedForm | Fraction | int) -> ClosedForm:
        right = ClosedForm.of(other)
        return ClosedForm(
            _times(self._numerator, right._numerator),
            _times(self._denominator, right._denominator),
        )

    __rmul__ = __mul__

    def __truediv__(self, other: ClosedForm | Fraction | int) -> ClosedForm:
        right = ClosedForm.of(other)
        return ClosedForm(
            _times(self._numerator, right._denominator),
            _times(self._denominator, right._numerator),
        )

    def __rtruediv__(self, other: Fraction | int) -> ClosedForm:
        return ClosedForm.of(other) / self

    def __pow__(self, exponent: Fraction | int) -> ClosedForm:
        """A rational power; of a sum only an integer power, of a single term also a fractional one."""
        power = Fraction(exponent)
        if power.denominator == 1:
            return self._integer_power(int(power))
        if self.is_zero() and power > 0:
            return self
        if len(self._numerator) != 1 or len(self._denominator) != 1:
            raise InvalidInputError(
                "closed form: roots are taken of a single positive term (numbers, pi, powers of them), not of a sum"
            )
        ((monomial, coefficient),) = self._numerator.items()
        if coefficient < 0:
            raise InvalidInputError("closed form: a root of a negative number is not real")
        return ClosedForm(_fractional_power(monomial, coefficient, power))

    def sqrt(self) -> ClosedForm:
        """The square root of a single non-negative term."""
        return self ** Fraction(1, 2)

    def _integer_power(self, power: int) -> ClosedForm:
        if power < 0:
            return 1 / self._integer_power(-power)
        if self.is_zero() and power > 0:
            return self
        largest = max((_bits(c) for c in self._numerator.values()), default=1)
        if power * max(largest - 1, 0) > MAX_BITS or (len(self._numerator) > 1 and power > MAX_TERMS):
            raise InvalidInputError(
                f"closed form: the power {power} needs more than {MAX_BITS} bits or {MAX_TERMS} terms"
            )
        if len(self._numerator) == 1 and len(self._denominator) == 1:
            ((monomial, coefficient),) = self._numerator.items()
            return ClosedForm(_normal({g: e * power for g, e in monomial}, coefficient**power))
        result = ClosedForm.of(1)
        for _ in range(power):
            result = result * self
        return result

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ClosedForm | Fraction | int):
            return NotImplemented
        return (self - other).is_zero()

    def __hash__(self) -> int:
        rational = self.as_rational()
        if rational is not None:  # equal to a Fraction or int, so hashed alike
            return hash(rational)
        try:
            return hash(float(self))
        except OverflowError:
            return hash(self.sign())

    def is_zero(self) -> bool:
        """Whether the number is exactly 0 (decided, not measured)."""
        return not self._numerator

    def sign(self) -> int:
        """-1, 0 or 1, exactly."""
        if self.is_zero():
            return 0
        bits = 64
        while True:
            enclosure = self.ball(bits)
            if enclosure > 0:
                return 1
            if enclosure < 0:
                return -1
            bits *= 2

    def __lt__(self, other: ClosedForm | Fraction | int) -> bool:
        return (self - other).sign() < 0

    def __le__(self, other: ClosedForm | Fraction | int) -> bool:
        return (self - other).sign() <= 0

    def __gt__(self, other: ClosedForm | Fraction | int) -> bool:
        return (self - other).sign() > 0

    def __ge__(self, other: ClosedForm | Fraction | int) -> bool:
        return (self - other).sign() >= 0

    def rational_turn(self) -> Fraction | None:
        """The number divided by 2*pi if that is rational, else None: whether an angle divides turns."""
        return (self / (2 * ClosedForm.pi())).as_rational()

    def ball(self, bits: int) -> balls.Ball:
        """A ball that contains the number, computed with `bits` bits of working precision."""
        while True:
            with balls.precision(bits):
                top = _sum_ball(self._numerator)
                value = top if len(self._denominator) == 1 else top / _sum_ball(self._denominator)
            if value.is_finite():
                return value
            bits *= 2  # the ball of the denominator holds 0; the denominator itself does not

    def __float__(self) -> float:
        """The nearest double. Error at most half a unit in the last place."""
        if self._float is None:
            rational = self.as_rational()
            self._float = float(rational) if rational is not None else self._nearest_double()
        return self._float

    def as_rational(self) -> Fraction | None:
        """The number as a fraction if it is rational, else None.

        Proof: numerator/denominator = r rational says numerator = r * denominator; both are in normal form, so
        they agree iff they have the same terms with one common ratio r.
        """
        if self.is_zero():
            return Fraction(0)
        if self._numerator.keys() != self._denominator.keys():
            return None
        ratios = {coefficient / self._denominator[term] for term, coefficient in self._numerator.items()}
        return ratios.pop() if len(ratios) == 1 else None

    def _nearest_double(self) -> float:
        # An irrational number is no midpoint of two doubles, so some precision decides.
        bits = 128
        while True:
            low, high = balls.rational_ends(self.ball(bits))
            if float(low) == float(high):
                return float(low)
            bits *= 2

    def __str__(self) -> str:
        """A text that `parse_closed_form` reads back as the same number."""
        top = _sum_text(self._numerator)
        return top if len(self._denominator) == 1 else f"({top})/({_sum_text(self._denominator)})"

    def __reduce__(self) -> tuple[type[ClosedForm], tuple[Sum, Sum]]:
        return ClosedForm, (self._numerator, self._denominator)

    def __repr__(self) -> str:
        return f"ClosedForm({str(self)!r})"


def nearest_integer(value: ClosedForm) -> int:
    """An integer within 1/2 of the number; of two such, the even one. Exact."""
    rational = value.as_rational()
    if rational is not None:
        return round(rational)
    bits = 128
    while True:  # an irrational number is no half-integer, so some precision decides
        low, high = balls.rational_ends(value.ball(bits))
        if round(low) == round(high):
            return round(low)
        bits *= 2


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _plus(left: Sum, right: Sum) -> Sum:
    total = dict(left)
    for monomial, coefficient in right.items():
        value = total.get(monomial, Fraction(0)) + coefficient
        if value:
            total[monomial] = value
        else:
            total.pop(monomial, None)
    return total


def _times(left: Sum, right: Sum) -> Sum:
    if len(left) * len(right) > MAX_TERMS**2:
        raise InvalidInputError(f"closed form: more than {MAX_TERMS} terms; write it shorter")
    total: Sum = {}
    for first, a in left.items():
        for second, b in right.items():
            exponents = dict(first)
            for generator, exponent in second:
                exponents[generator] = exponents.get(generator, Fraction(0)) + exponent
            total = _plus(total, _normal(exponents, a * b))
    return total


def _inverse(single: Sum) -> Sum:
    ((monomial, coefficient),) = single.items()
    return _normal({generator: -exponent for generator, exponent in monomial}, 1 / coefficient)


def _normal(exponents: dict[int, Fraction], coefficient: Fraction) -> Sum:
    """One term with the integer part of every prime's exponent moved into the coefficient."""
    kept: list[tuple[int, Fraction]] = []
    for generator, exponent in sorted(exponents.items()):
        if generator == PI_KEY:
            if exponent:
                kept.append((generator, exponent))
            continue
        whole = exponent.numerator // exponent.denominator
        if abs(whole) * (generator.bit_length() - 1) > MAX_BITS:
            raise InvalidInputError(f"closed form: a number needs more than {MAX_BITS} bits")
        coefficient *= Fraction(generator) ** whole
        if exponent != whole:
            kept.append((generator, exponent - whole))
    return {tuple(kept): coefficient} if coefficient else {}


def _fractional_power(monomial: Monomial, coefficient: Fraction, power: Fraction) -> Sum:
    exponents = {generator: exponent * power for generator, exponent in monomial}
    for number, sign in ((coefficient.numerator, 1), (coefficient.denominator, -1)):
        if number.bit_length() > balls.MAX_FACTOR_BITS:
            raise InvalidInputError(
                f"closed form: roots are taken of integers up to {balls.MAX_FACTOR_BITS} bits; this one has "
                f"{number.bit_length()}"
            )
        for prime, exponent in _factors(number):
            exponents[prime] = exponents.get(prime, Fraction(0)) + sign * exponent * power
    return _normal(exponents, Fraction(1))


@lru_cache(maxsize=256)
def _factors(number: int) -> tuple[tuple[int, int], ...]:
    return tuple(balls.prime_factors(number))


def _sum_ball(terms: Sum) -> balls.Ball:
    total = balls.ball(0)
    for monomial, coefficient in terms.items():
        term = balls.ball(coefficient)
        for generator, exponent in monomial:
            base = balls.pi() if generator == PI_KEY else balls.ball(generator)
            term *= base ** balls.ball(exponent)
        total += term
    return total


def _sum_text(terms: Sum) -> str:
    if not terms:
        return "0"
    return "+".join(_term_text(monomial, coefficient) for monomial, coefficient in sorted(terms.items()))


def _term_text(monomial: Monomial, coefficient: Fraction) -> str:
    factors = [f"{'pi' if g == PI_KEY else g}" + ("" if e == 1 else f"^({e})") for g, e in monomial]
    if coefficient != 1 or not factors:
        shown = str(coefficient) if coefficient.denominator == 1 and coefficient > 0 else f"({coefficient})"
        factors.insert(0, shown)
    return "*".join(factors)
