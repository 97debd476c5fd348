"""Programs as functions: arguments are checked against the manifest before anything is sent."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Protocol, Union

import numpy

from .blobs import Store
from .datatypes import DTYPES, Array, array_of, name_of
from .futures import Future, MapFuture, Sent
from .handles import Kept, Rows
from .job import Job, Output, describe, job, step
from .population import Population

Listing = Sequence[Mapping[str, Any]]

INTEGERS = {"u32": (0, 2**32 - 1), "i32": (-(2**31), 2**31 - 1), "u64": (0, 2**64 - 1), "i64": (-(2**63), 2**63 - 1)}
INSTANCES = 16_384  # far below `limits.instances_per_job`: an array runs on one worker, within one time-out
F64_MAX = sys.float_info.max
F32_MAX = 3.4028235677973366e38  # what rounds to more is infinite


def read_listing(programs: Union[None, str, os.PathLike[str], Listing], command: Sequence[str]) -> Listing:
    """The output of `gpu-worker programs --json`: as given, from a file, or from the command."""
    if programs is None:
        return _ask(command)
    if not isinstance(programs, (str, os.PathLike)):
        return programs
    with open(programs, encoding="utf-8") as file:
        listing: Listing = json.load(file)
    return listing


def _ask(command: Sequence[str]) -> Listing:
    try:
        run = subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{command[0]} is not here to tell what programs take: give the client `programs`, a file with what "
            "`gpu-worker programs --json` prints where the workers are") from None
    except subprocess.CalledProcessError as failure:
        raise RuntimeError(f"{' '.join(command)}: {failure.stderr.strip()}") from None
    listing: Listing = json.loads(run.stdout)
    return listing


def _find(items: Sequence[Mapping[str, Any]], name: str, what: str) -> Mapping[str, Any]:
    for item in items:
        if item["name"] == name:
            return item
    raise LookupError(f"there is no {what} '{name}'; there is {', '.join(item['name'] for item in items)}")


@dataclasses.dataclass(frozen=True)
class Options:
    """How a program is called, besides its arguments."""

    elements: Optional[int] = None
    grid: Union[None, int, Sequence[int]] = None
    block: Union[None, int, Sequence[int]] = None
    shared_bytes: Optional[int] = None
    iterations: Optional[int] = None
    outputs: Optional[Sequence[Output]] = None
    name: Optional[str] = None
    key: Union[None, str, bytes] = None
    repeat: Optional[int] = None
    until: Optional[str] = None
    time_ms: Optional[int] = None
    progress: Optional[Mapping[str, Any]] = None
    timing: Optional[bool] = None
    timeout_ms: Optional[int] = None
    deadline_ms: Optional[int] = None
    instances: Optional[int] = None  # rows of a map() in one job, at most


def _extents(value: Union[int, Sequence[int]]) -> list[int]:
    return [value] if isinstance(value, int) else [int(extent) for extent in value]


class Submitter(Protocol):
    """What a program needs from its client."""

    @property
    def store(self) -> Optional[Store]: ...

    def submit(self, job: Job, key: Union[None, str, bytes] = None, name: Optional[str] = None) -> Future: ...

    def gather(self, sent: Sequence[Sent]) -> MapFuture: ...


class Program:
    """One entry of a program; call it with its arguments by name, and get a Future.

    A value is a number. A buffer is an array or nested lists; a Static or a Resident; for one that the kernel only
    writes (`out`), a shape; or a dict as `gw.zeros()` makes it. Left out may be whole numbers that count elements of
    buffers (`at_most` in the manifest): they are as large as those allow. The kernel then has a thread for each element
    of the largest buffer that it writes. What it writes comes back, but for residents.
    """

    def __init__(
        self, client: Submitter, listing: Listing, name: str, entry: str = "", options: Options = Options()
    ) -> None:
        self._client = client
        self._listing = listing
        self._options = options
        program = _find(listing, name, "program")
        self.name = name
        self.description: str = program["description"]
        self._entry = _find(program["entries"], entry, f"entry of {name}") if entry else program["entries"][0]
        self._is_default = self._entry is program["entries"][0]
        self._args: list[Mapping[str, Any]] = self._entry["args"]

    def __repr__(self) -> str:
        args = ", ".join(f"{arg['name']}: {arg['role']} {arg['type'] or 'bytes'}" for arg in self._args)
        return f"{self.name}({args})"

    def options(self, **options: Any) -> Program:
        """Returns the program called in another way: `elements` or `grid`, `block`, `shared_bytes`, `iterations`;
        `outputs` as jobs have them; `repeat`; of a long job `until`, the argument that says when it is done,
        `time_ms`, and `progress`, what it shows while it runs (`gw.progress()`); `name`, `key`, `timing`, `timeout_ms`,
        `deadline_ms`; `instances`: of a map(), how many rows go into one job at most, and 1 for a job for each row."""
        changed = dataclasses.replace(self._options, **options)
        return Program(self._client, self._listing, self.name, self._entry["name"], changed)

    def __call__(self, **args: Any) -> Future:
        """Sends a job. Raises TypeError or ValueError if the manifest does not allow the arguments."""
        return self._client.submit(self.job(**args), self._options.key)

    def map(self, **args: Any) -> MapFuture:
        """Runs the program for each row. Arrays of values have one number a row, and of `gw.rows(array)` each row has a part,
        along the first axis; all else is the same for every row. The outputs come back stacked. Rows travel as array jobs where these can say it,
        otherwise each row is a job."""
        cut = {name: self._column(name, value) for name, value in args.items() if self._is_cut(name, value)}
        counts = {name: value.shape[0] if value.ndim else 0 for name, value in cut.items()}
        if len(set(counts.values())) != 1:
            raise ValueError(f"the arrays of a map() have one length, the number of rows; these have {counts or 'none'}")
        (count,) = set(counts.values())
        if count == 0:
            raise ValueError("there is no row to send")
        same = {name: value for name, value in args.items() if name not in cut}
        label = self._options.name or self.name
        names = [f"{label}[{row}]" for row in range(count)]
        population = self._population(same, cut)
        at_once = 1 if population is None else population.rows_at_once(
            self._options.instances or INSTANCES, self._client.store is None)
        if population is None or at_once < 2 or count < 2:
            return self._client.gather([
                Sent(self.options(name=names[row])(**same, **{name: value[row] for name, value in cut.items()}))
                for row in range(count)])
        sent = []
        for first in range(0, count, at_once):
            end = min(first + at_once, count)
            future = self._client.submit(population.job(first, end), self._options.key, f"{label}[{first}:{end}]")
            sent.append(Sent(future, names[first:end]))
        return self._client.gather(sent)

    def _population(self, same: Mapping[str, Any], cut: Mapping[str, Array]) -> Optional[Population]:
        """The rows for array jobs, after a check of each. None if the rows must be single jobs."""
        is_for_one = self._options.timeout_ms is not None  # of an array it would be the time of all rows together
        if not self._entry.get("batched", False) or is_for_one:
            return None
        first = self.job(**same, **{name: value[0] for name, value in cut.items()})
        values: dict[int, tuple[str, Array]] = {}
        buffers = {}
        for place, arg in enumerate(self._args):
            name = arg["name"]
            if name in cut and arg["role"] == "value":
                values[place] = (arg["type"], self._numbers(arg, cut[name]))
            elif name in cut:  # rows of one number take the kernel's type, as a job's would
                buffers[name] = cut[name].astype(numpy.asarray(first["buffers"][name]).dtype, copy=False)
        bounded = {term["arg"] for bound in self._entry["bounds"] for term in (bound["what"], bound["times"], bound["plus"])
                   if isinstance(term, Mapping) and "arg" in term}
        if bounded & {name for name in cut if self._arg(name)["role"] == "value"}:
            for row in range(1, len(next(iter(cut.values())))):
                self.job(**same, **{name: value[row] for name, value in cut.items()})
        written = [arg["name"] for arg in self._args if arg["role"] in ("out", "inout")]
        return Population.of(first, buffers, values, written)

    def _is_cut(self, name: str, value: Any) -> bool:
        arg = self._arg(name)
        if isinstance(value, (Kept, Mapping)):
            return False
        if arg["role"] == "value":
            return isinstance(value, Rows) or numpy.ndim(value) == (2 if arg["type"] == "words" else 1)
        if not isinstance(value, Rows) and not self._is_shape(arg, value):
            raise TypeError(f"{self.name}: say what '{name}' is to the rows of a map(): gw.rows({name}), if each has a part of "
                            f"it; client.static({name}) or gw.upload({name}), if all have the whole")
        return isinstance(value, Rows)

    def _column(self, name: str, value: Any) -> Array:
        """A part for each row."""
        arg, array = self._arg(name), value.array if isinstance(value, Rows) else value
        return numpy.asarray(array) if arg["role"] == "value" else self._array(arg, array)

    # --- what is checked ---

    def _arg(self, name: str) -> Mapping[str, Any]:
        for arg in self._args:
            if arg["name"] == name:
                return arg
        raise TypeError(f"{self.name} takes no argument '{name}'; it is {self!r}")

    @staticmethod
    def _is_shape(arg: Mapping[str, Any], value: Any) -> bool:
        return arg["role"] == "out" and (
            isinstance(value, int) or isinstance(value, tuple) and all(isinstance(extent, int) for extent in value))

    def _buffer(self, arg: Mapping[str, Any], value: Any) -> Any:
        wanted, given = None if arg["type"] is None else DTYPES[arg["type"]], value
        if self._is_shape(arg, value):
            return describe([value] if isinstance(value, int) else value, wanted or numpy.uint8)
        if isinstance(value, Kept):
            found: Any = value.described["datatype"]
        elif isinstance(value, Mapping):
            found = value.get("datatype", arg["type"])
        else:
            value = self._array(arg, value)
            found = name_of(value.dtype)
        if arg["type"] not in (None, found) and not (arg["type"] == "BF16" and found == "UINT16"):
            how = f".astype('{wanted}')" if isinstance(given, numpy.ndarray) else f"numpy.asarray({arg['name']}, '{wanted}')"
            raise TypeError(f"{self.name}: '{arg['name']}' is {found}, and the kernel takes {arg['type']}: use {how}")
        return value

    def _array(self, arg: Mapping[str, Any], value: Any) -> Array:
        try:
            array = array_of(value, None if arg["type"] is None else DTYPES[arg["type"]])
        except ValueError as failure:
            raise ValueError(f"{self.name}: '{arg['name']}': {failure}") from None
        if name_of(array.dtype) is None:
            raise TypeError(f"{self.name}: '{arg['name']}' has elements of type {array.dtype}, which no buffer can hold; the "
                            f"kernel takes {arg['type'] or 'bytes'}")
        return array

    def _number(self, arg: Mapping[str, Any], value: Any) -> Union[int, float]:
        name = f"{self.name}: '{arg['name']}'"
        low, high = arg.get("between", (None, None))
        number: Union[int, float]
        is_complex = isinstance(value, (complex, numpy.complexfloating))
        if not hasattr(value, "__float__") or getattr(value, "ndim", 0) != 0 or is_complex:
            raise TypeError(f"{name} is {value!r}, and the kernel takes a number ({arg['type']})")
        if arg["type"] in ("f32", "f64"):
            number = float(value) if abs(value) <= F64_MAX or abs(value) == math.inf or value != value else math.nan
            if math.isnan(number) and value == value:
                raise ValueError(f"{name} is {value}, more than an f64 holds")
            if arg["type"] == "f32" and math.isfinite(number) and abs(number) >= F32_MAX:
                raise ValueError(f"{name} is {number}, more than an f32 holds")
        else:
            if isinstance(value, (float, numpy.floating)) or int(value) != value:
                raise TypeError(f"{name} is {value!r}, and the kernel takes a whole number ({arg['type']})")
            number = int(value)
            least, most = INTEGERS["u32" if arg["type"] == "words" else arg["type"]]
            if not least <= number <= most:
                raise ValueError(f"{name} is {number}, and {arg['type']} goes from {least} to {most}")
        if low is not None and not number >= low or high is not None and not number <= high:
            raise ValueError(f"{name} is {number}, and the kernel takes {low} to {high}")
        return number

    def _numbers(self, arg: Mapping[str, Any], column: Array) -> Array:
        """The values of all rows, in the form of a message. Raises the error of the first row with a wrong value."""
        if not self._are_numbers(arg, column):
            for value in column.ravel():
                self._number(arg, value)
        if arg["type"] == "words":
            return column.astype("<u4")
        wide = column.astype("<f8") if arg["type"] in ("f32", "f64") else column  # as a job's travel
        return wide.astype({"f": "<f", "u": "<u", "i": "<i"}[arg["type"][0]] + str(int(arg["type"][1:]) // 8))

    def _are_numbers(self, arg: Mapping[str, Any], column: Array) -> bool:
        """Whether all are right, because the least and the greatest are. False if that is not known."""
        if column.dtype.kind not in "iuf" or not numpy.isfinite(column).all():
            return False
        try:
            self._number(arg, column.min())
            self._number(arg, column.max())
        except (TypeError, ValueError):
            return False
        return True

    def _value(self, arg: Mapping[str, Any], value: Any) -> Any:
        if arg["type"] != "words":
            return self._number(arg, value)
        if numpy.ndim(value) != 1:
            raise TypeError(f"{self.name}: '{arg['name']}' is {value!r}, and the kernel takes {arg['count']} words")
        if len(value) != arg["count"]:
            raise ValueError(f"{self.name}: '{arg['name']}' has {len(value)} words, and the kernel takes {arg['count']}")
        return [self._number(arg, word) for word in value]

    @staticmethod
    def _bytes_of(value: Any) -> int:
        if isinstance(value, Kept):
            value = value.described
        return int(value["bytes"] if isinstance(value, Mapping) else value.nbytes)

    def _elements(self, name: str, buffers: Mapping[str, Any]) -> int:
        datatype = self._arg(name)["type"]
        return self._bytes_of(buffers[name]) // (1 if datatype is None else DTYPES[datatype].itemsize)

    def _fill_in(self, values: dict[str, Any], buffers: Mapping[str, Any]) -> None:
        """Adds the counts that the caller left out."""
        for arg in self._args:
            name = arg["name"]
            if arg["role"] != "value" or name in values:
                continue
            plain = [bound["at_most"]["arg"] for bound in self._entry["bounds"]
                     if bound["what"] == {"arg": name} and (bound["times"], bound["plus"]) == (1, 0)
                     and "arg" in bound["at_most"]]
            if not plain or arg["type"] not in INTEGERS:
                raise TypeError(f"{self.name}: argument '{name}' is missing; it is {self!r}")
            values[name] = self._number(arg, min(self._elements(buffer, buffers) for buffer in plain))

    def _check_bounds(self, values: Mapping[str, Any], buffers: Mapping[str, Any], launch: Mapping[str, int]) -> None:
        def terms(term: Any) -> list[int]:
            if isinstance(term, int):
                return [term]
            if "launch" in term:
                return [launch[term["launch"]]]
            value = values[term["arg"]]
            return list(value) if isinstance(value, list) else [value]

        for bound in self._entry["bounds"]:
            of = bound["at_most"]
            room = launch[of["launch"]] if "launch" in of else self._elements(of["arg"], buffers)
            (times,), (plus,) = terms(bound["times"]), terms(bound["plus"])
            for what in terms(bound["what"]):
                if what < 0 or times < 0 or plus < 0 or what * times + plus > room:
                    raise ValueError(f"{self.name}: {self._say(bound)} is {what * times + plus}, and "
                                     f"{next(iter(of.values()))} has {room}")

    @staticmethod
    def _say(bound: Mapping[str, Any]) -> str:
        def say(term: Any) -> str:
            return str(term) if isinstance(term, int) else str(next(iter(term.values())))

        text = say(bound["what"])
        text += f" * {say(bound['times'])}" if bound["times"] != 1 else ""
        return text + (f" + {say(bound['plus'])}" if bound["plus"] != 0 else "")

    def job(self, **args: Any) -> Job:
        """The job that a call with these arguments sends; its buffers are as they were given."""
        given = {name: self._arg(name) for name in args}
        values = {name: self._value(arg, args[name]) for name, arg in given.items() if arg["role"] == "value"}
        buffers = {name: self._buffer(arg, args[name]) for name, arg in given.items() if arg["role"] != "value"}
        missing = [arg["name"] for arg in self._args if arg["role"] != "value" and arg["name"] not in buffers]
        if missing:
            raise TypeError(f"{self.name}: argument '{missing[0]}' is missing; it is {self!r}")
        self._fill_in(values, buffers)
        written = [arg["name"] for arg in self._args if arg["role"] in ("out", "inout")]
        options, shape = self._options, self._shape(written, buffers)
        self._check_bounds(values, buffers, self._launch(shape))
        spelled = [arg["name"] if arg["role"] != "value" else {arg["type"]: values[arg["name"]]} for arg in self._args]
        entry = {} if self._is_default else {"entry": self._entry["name"]}
        how = {key: getattr(options, key) for key in ("shared_bytes", "iterations")}
        self._check_long(written, buffers)
        whole = {key: getattr(options, key) for key in (
            "repeat", "until", "time_ms", "progress", "timing", "timeout_ms", "deadline_ms")}
        outputs = options.outputs
        if outputs is None:
            outputs = [name for name in written if not isinstance(buffers[name], Kept)]
        return job(
            options.name or self.name, buffers,
            [step(self.name, spelled, **entry, **shape, **{key: value for key, value in how.items() if value is not None})],
            outputs, **{key: value for key, value in whole.items() if value is not None})

    def _check_long(self, written: Sequence[str], buffers: Mapping[str, Any]) -> None:
        until, repeat, shown = self._options.until, self._options.repeat, self._options.progress
        if (until, self._options.time_ms, shown) != (None, None, None) and repeat is None:
            raise TypeError(f"{self.name}: a long job says how many rounds it may run: options(repeat=...)")
        for output in (shown or {}).get("outputs", []):
            name = output if isinstance(output, str) else output.get("buffer")
            if name not in buffers:
                raise TypeError(f"{self.name}: `progress` names '{name}', which is no buffer; it is {self!r}")
        if until is None:
            return
        if until not in written:
            raise TypeError(f"{self.name}: `until` names '{until}', which the kernel does not write; it is {self!r}")
        if self._bytes_of(buffers[until]) != 4:
            size = self._bytes_of(buffers[until])
            raise ValueError(f"{self.name}: '{until}' has {size} bytes, and `until` takes one u32")

    def _shape(self, written: Sequence[str], buffers: Mapping[str, Any]) -> dict[str, Any]:
        """`grid` or `elements`, and `block`, as a step has them."""
        options = self._options
        block = {} if options.block is None else {"block": _extents(options.block)}
        if options.grid is not None:
            return {"grid": _extents(options.grid), **block}
        elements = options.elements
        if elements is None:
            elements = max((self._elements(name, buffers) for name in written), default=1)
        return {"elements": max(elements, 1), **block}

    def _launch(self, shape: Mapping[str, Any]) -> dict[str, int]:
        threads = math.prod(shape.get("block", self._entry["block"]))
        blocks = math.prod(shape["grid"]) if "grid" in shape else -(-shape["elements"] // threads)
        shared = self._options.shared_bytes
        return {"blocks": blocks, "threads": threads,
                "shared_bytes": self._entry["shared_bytes"] if shared is None else shared}
