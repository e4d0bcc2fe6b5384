"""One finished run of a method on a problem, as one line of JSON.

Notation
    row     (d,) integers; written as one number in mixed radix (the first variable counts most), in hexadecimal of a
            fixed width, so that a run of 270 evaluations of 60 binary variables stays under 20 KB
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import IO, Any

import numpy as np

from carbo.errors import DataError
from carbo.numerics.types import Floats, Ints
from carbo.settings import flatten, is_implied, unflatten

FORMAT = 1
LIMITS, LONGEST = ("learn_from", "predict_from"), 400
"""Settings that change nothing where there are fewer evaluations; and more evaluations than any problem has."""
Key = tuple[str, int | None, str, str, int, int]
"""What tells one run from another: problem, relocated, method, settings as JSON, run, number of evaluations."""


@dataclass(frozen=True)
class Record:
    """One finished run. `rows` are those that the method saw: of the relocated problem, if it was relocated."""

    problem: str
    instance: dict[str, Any]
    relocated: int | None
    """The seed of the relocation; None for the original problem."""
    method: str
    settings: dict[str, Any]
    run: int
    """Number of the paper's run, 1..25, which fixes the instance and the initial points."""
    seed: int
    """The seed of the method."""
    initial: int
    """Number of initial points among the evaluations."""
    sizes: tuple[int, ...]
    """Number of values of each variable."""
    rows: Ints
    """(n, d), in the order of evaluation."""
    values: Floats
    """(n,), in the order of evaluation; NaN, in the line null, where an evaluation failed."""
    seconds: Floats
    """(n - initial,): processor time of each suggestion, tell and ask together, without evaluations. Other work on the
    machine does not lengthen it.
    """
    versions: dict[str, str]
    revision: str
    machine: dict[str, Any]
    finished: str
    """UTC, ISO 8601."""

    @property
    def best(self) -> Floats:
        """(n,): smallest value so far; NaN while all have failed."""
        return np.asarray(np.fmin.accumulate(self.values))

    @property
    def key(self) -> Key:
        """Equal for two records of the same run."""
        return (
            self.problem,
            self.relocated,
            self.method,
            canonical(comparable(self.settings)),
            self.run,
            len(self.values),
        )


def canonical(value: Any) -> str:
    """A JSON value as text; equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def comparable(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A method's settings without those that change nothing, so that equal settings of different revisions are equal.

    Left out are settings that say what their absence says too (`carbo.settings.is_implied`), and limits that no run
    reaches.
    """
    named = flatten(settings) if "priors" in settings else dict(settings)
    unreached = {key for key in LIMITS if named.get(key) is not None and named[key] >= LONGEST}
    kept = {key: value for key, value in named.items() if key not in unreached and not is_implied(key, named)}
    return unflatten(kept) if "priors" in settings else kept


def line(record: Record) -> str:
    """The record as one line, newline included. Rows and values are exact, seconds have four significant digits."""
    entries = {
        "format": FORMAT,
        **{each.name: getattr(record, each.name) for each in fields(record)},
        "sizes": list(record.sizes),
        "rows": _pack(record.rows, record.sizes),
        "values": [None if math.isnan(value) else value for value in record.values.tolist()],
        "seconds": [float(f"{second:.4g}") for second in record.seconds.tolist()],
    }
    return json.dumps(entries, separators=(",", ":"), allow_nan=False) + "\n"


def parse(text: str) -> Record:
    """The record of a line. DataError, which says what is wrong, when the line is no record."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"expected JSON, got {text[:30]!r} ({error})") from None
    if not isinstance(entries, dict) or entries.pop("format", None) != FORMAT:
        raise DataError(f"expected an object with format {FORMAT}, got {text[:30]!r}; newer formats need a newer carbo")
    checks = _checks()
    if set(entries) != set(checks):
        raise DataError(f"expected the fields {', '.join(checks)}, got {', '.join(sorted(entries)) or 'none'}")
    for name, is_valid in checks.items():
        if not is_valid(entries[name]):
            raise DataError(f"{name}: got {json.dumps(entries[name])[:40]}, which is no value of this field")
    return _record_of(entries)


def read(path: str | Path) -> list[Record]:
    """The records of a .jsonl file, or of all such files in a folder or its subfolder `runs`, each run once.

    Where results of two machines were put together and a run is there twice, the first record counts. DataError with
    file and line when a line is damaged, and when there is no file. Another process may be writing.
    """
    files = _files(Path(path))
    if not files:
        raise DataError(
            f"{path}: expected a .jsonl file, or a folder with some, got none; `python -m lab run` makes them"
        )
    found: dict[Key, Record] = {}
    for file in files:
        for record in _records(file):
            found.setdefault(record.key, record)
    return list(found.values())


def parse_at(text: str, path: Path, number: int) -> Record:
    """`parse`, with file and line number in its error."""
    try:
        return parse(text)
    except DataError as error:
        raise DataError(
            f"{path}:{number}: damaged line: {error}; restore it, or delete it to make that run again"
        ) from None


@contextlib.contextmanager
def file_lock(file: IO[Any], exclusive: bool) -> Iterator[None]:
    """Within: this process has the lock of the open file, alone or (exclusive=False) together with other readers.

    Without effect on systems that have no such locks.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    fcntl.flock(file.fileno(), fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    try:
        yield
    finally:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path] if path.is_file() else []
    inner = path / "runs"
    return sorted(inner.glob("*.jsonl") if inner.is_dir() else set(path.glob("*.jsonl")) - {path / "speed.jsonl"})


def _records(path: Path) -> Iterator[Record]:
    with path.open("rb") as file, file_lock(file, exclusive=False):
        content = file.read()
    for number, text in enumerate(content.decode(errors="replace").split("\n"), start=1):
        if text:
            yield parse_at(text, path, number)


def _pack(rows: Ints, sizes: tuple[int, ...]) -> str:
    width = _width(sizes)
    return " ".join(f"{_number(row, sizes):0{width}x}" for row in rows.tolist())


def _width(sizes: tuple[int, ...]) -> int:
    return len(f"{math.prod(sizes) - 1:x}")


def _number(row: list[int], sizes: tuple[int, ...]) -> int:
    number = 0
    for value, size in zip(row, sizes, strict=True):
        if not 0 <= value < size:
            raise DataError(f"row: expected values from 0 to {size - 1}, got {value}")
        number = number * size + value
    return number


def _row(word: str, sizes: tuple[int, ...]) -> list[int]:
    number, row = int(word, 16), []
    for size in reversed(sizes):
        number, value = divmod(number, size)
        row.append(value)
    if number:
        raise DataError(f"rows: expected numbers below {math.prod(sizes):x}, got {word}")
    return row[::-1]


def _unpack(text: str, sizes: tuple[int, ...]) -> Ints:
    words, width = text.split(" "), _width(sizes)
    for word in words:
        if len(word) != width or not set(word) <= set("0123456789abcdef"):
            raise DataError(f"rows: expected numbers of {width} hexadecimal digits, got {word[:40]!r}")
    return np.array([_row(word, sizes) for word in words], dtype=np.intp)


def _record_of(entries: dict[str, Any]) -> Record:
    sizes = tuple(entries["sizes"])
    rows = _unpack(entries["rows"], sizes)
    values, seconds = np.array(entries["values"], dtype=float), np.array(entries["seconds"], dtype=float)
    if len(rows) != len(values) or len(seconds) != len(values) - entries["initial"]:
        raise DataError(f"expected as many values as rows, and seconds for all but the {entries['initial']} initial "
                        f"ones, got {len(rows)} rows, {len(values)} values and {len(seconds)} seconds")  # fmt: skip
    return Record(**{**entries, "sizes": sizes, "rows": rows, "values": values, "seconds": seconds})


def _checks() -> dict[str, Callable[[Any], bool]]:
    special: dict[str, Callable[[Any], bool]] = {
        "relocated": lambda it: it is None or _is_count(it),
        "run": _is_count,
        "seed": _is_count,
        "initial": _is_count,
        "sizes": lambda it: isinstance(it, list) and len(it) > 0 and all(_is_count(k) and k > 0 for k in it),
        "values": lambda it: isinstance(it, list) and _are_numbers([value for value in it if value is not None]),
        "seconds": _are_numbers,
    }
    plain = {each.name: _is_object if str(each.type).startswith("dict") else _is_text for each in fields(Record)}
    return {**plain, **special}


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(
        isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in values
    )
