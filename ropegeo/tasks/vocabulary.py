"""Letters by the names of the paper's alphabet."""

from ropegeo.errors import InvalidInputError

MAX_LETTERS = 4_096


def letter_names(count: int) -> tuple[str, ...]:
    """The first letters of the paper's alphabet: a..z, aa, ab, ..., dp at 120, and on.

    Raises:
        InvalidInputError: fewer than 1 or more than `MAX_LETTERS`.

    Example:
        >>> letter_names(120)[-1]
        'dp'
    """
    if not 1 <= count <= MAX_LETTERS:
        raise InvalidInputError(f"{count} letters: give between 1 and {MAX_LETTERS}")
    names = []
    for number in range(count):
        name, rest = "", number + 1
        while rest:
            rest, digit = divmod(rest - 1, 26)
            name = chr(ord("a") + digit) + name
        names.append(name)
    return tuple(names)
