"""Random jobs over the programs that model.py knows, each from a seed of its own.

    generator = Generator(images={"mix": "sha256:...", "saxpy": "sha256:..."})
    case = generator.case(seed)        # the same seed gives the same case

Chances lie between 0 and 1, weights are relative, sizes are in bytes.
"""

import dataclasses
import hashlib
import math
import random

import numpy

from arrays import can_be_array, make_array
from defects import DEFECTS, DEFECT_CODES
from long_jobs import can_be_long, make_draws, make_long
from model import KERNELS

INVALID_CHANCE = 0.1
ARRAY_CHANCE = 0.15  # of the valid jobs that may be one
LONG_CHANCE, DRAWS_CHANCE = 0.05, 0.05

# buffers
SOURCE_WEIGHTS = {"none": 3, "fill": 2, "data": 5, "blob": 1, "static": 2}
SIZE_WEIGHTS = {"empty": 5, "tiny": 35, "small": 60}
TINY_ELEMENTS, SMALL_BYTES = 8, 4 << 10
LARGE_JOB_CHANCE = 0.01  # one buffer that outgrows the slab of a lane and is not always read back whole
LARGE_BYTES = (280 << 10, 320 << 10)
REUSE_CHANCE = 0.5  # an argument takes a buffer that is there already
UNUSED_BUFFERS_MAX = 2
WRITES_CHANCE, WRITES_MAX, EMPTY_WRITE_CHANCE = 0.25, 3, 0.1
DATATYPE_CHANCE, SHAPE_CHANCE = 0.4, 0.3
RESIDENT_JOB_CHANCE = 0.2  # in such jobs, some buffers whose source would be data
RESIDENT_CHANCE = 0.8
RESIDENT_BYTES, RESIDENTS_OF_A_SIZE = (8, 64, 2048), 3  # few, so that they meet again
STATIC_TWICE_CHANCE = 0.3  # another buffer of a static that the job brings, without its data
STATIC_DATA_CHANCE = 0.5  # a static that is in the blob store brings its data along all the same

# steps
STEPS_MAX = 5
ENTRY_WEIGHTS = dict.fromkeys(KERNELS, 1)
PART_CHANCE = 0.3  # the kernel works on fewer elements than its buffers have
UNCOVERED_CHANCE = 0.1  # the grid has fewer threads than there are elements
BLOCK_CHANCE, ELEMENTS_CHANCE = 0.4, 0.6
BLOCK_THREADS_MAX = 512
DEFAULT_ENTRY_CHANCE, PIN_CHANCE = 0.5, 0.1
ITERATIONS_CHANCE, ITERATIONS_MAX = 0.2, 3
COOPERATIVE_CHANCE, COOPERATIVE_BLOCKS_MAX = 0.05, 4
# More blocks than any GPU so far runs at once with that much shared memory: a cooperative entry goes in phases.
PHASES_CHANCE, PHASED_OPTIONS = 0.05, {"grid": [400], "shared_bytes": 100 << 10}
# Even 4 * 5 * 3 launches that each make a float three times larger stay far below the largest one.
REPEAT_CHANCE, REPEAT_MAX = 0.15, 4
FACTOR_MAX = 2.0
DRAWS_MAX = 5
WORDS = 4  # of the kernels with a parameter block

# Seeds come in blocks. In most blocks jobs take their steps' kernels and sizes from a few shapes: the worker learns how
# long a shape takes, lets known ones share a batch, and equal ones that are neighbours a launch. A shape's twins differ
# from it in one number.
BLOCK_SEEDS = 32
SHAPED_BLOCK_CHANCE = 0.7
SHAPES, OTHER_SHAPE_CHANCE, TWIN_CHANCE = 20, 0.1, 0.3  # most jobs of a block have the same one
SHAPED_THREADS_MAX = 600
BATCHED_SHAPE_CHANCE = 0.5  # all its kernels have a batched form, which one launch for many jobs takes
STREAMED_SHAPE_CHANCE = 0.15  # one launch of a kernel that touches each byte once: it may work in host memory
BATCHED_KERNELS = [
    *(("mix", name) for name in ("add_u32", "reverse_blocks", "scalars", "words_in_buffer")),
    ("saxpy", "saxpy"),
]

# results
OUTPUTS_MAX = 5
RANGE_CHANCE, EMPTY_RANGE_CHANCE = 0.5, 0.1
TIMING_CHANCE, DEADLINE_CHANCE = 0.1, 0.05
LATER_MS = 4102444800000  # the year 2100

# The payloads that statics and blobs name: few, so that they meet again. The names are theirs alone.
PAYLOAD_SEED = "payloads"
PAYLOAD_BYTES = {"words": [8, 64, 248, 1024, 4096, 20000, 70000], "bytes": [0, 1, 777], "floats": [16, 400, 12000]}
STORED_CHANCE = 0.7

ELEMENT_BYTES = {"UINT8": 1, "UINT32": 4, "UINT64": 8, "FP32": 4}


@dataclasses.dataclass
class Payload:
    data: bytes
    is_float: bool
    is_stored: bool  # in the blob store; else a static of it always brings the data along

    @property
    def digest(self):
        return "sha256:" + hashlib.sha256(self.data).hexdigest()


@dataclasses.dataclass
class Case:
    seed: int
    job: dict
    defect: str | None  # its name in DEFECTS

    @property
    def error_code(self):
        return DEFECT_CODES.get(self.defect)


def _random_bytes(chooser, size, is_float):
    if not is_float:
        return chooser.randbytes(size)
    values = numpy.frombuffer(chooser.randbytes(size // 2), "<i2")
    return (values.astype("<f4") / 4096).tobytes()


def _make_payloads():
    chooser = random.Random(PAYLOAD_SEED)
    return [
        Payload(_random_bytes(chooser, size, kind == "floats"), kind == "floats", chooser.random() < STORED_CHANCE)
        for kind, sizes in PAYLOAD_BYTES.items()
        for size in sizes
    ]


class Generator:
    def __init__(self, images):
        """`images`: {program: digest of the image that the driver under test loads}."""
        self._images = images
        self.payloads = _make_payloads()
        self.array_payloads = {}  # what arrays have in the blob store, {digest: bytes}

    def stored_payloads(self):
        return [payload.data for payload in self.payloads if payload.is_stored]

    def case(self, seed):
        maker = JobMaker(random.Random(seed), self.payloads, self._images)
        if maker.happens(DRAWS_CHANCE):
            return Case(seed, make_draws(maker.random, f"job-{seed}"), None)
        job = maker.job(f"job-{seed}", self._shape(seed, maker))
        defect = None
        if maker.happens(INVALID_CHANCE):
            defect = maker.random.choice(list(DEFECTS))
            DEFECTS[defect](maker, job)
        elif can_be_array(job) and maker.happens(ARRAY_CHANCE):
            self.array_payloads |= make_array(maker.random, job)
        if not defect and can_be_long(job) and maker.happens(LONG_CHANCE):
            make_long(job)
        return Case(seed, job, defect)


    def _shape(self, seed, maker):
        block = random.Random(f"block-{seed // BLOCK_SEEDS}")
        if block.random() >= SHAPED_BLOCK_CHANCE:
            return maker.shape()
        chooser = maker.random if maker.happens(OTHER_SHAPE_CHANCE) else block
        shape = _common_shape(chooser.randrange(SHAPES))
        if maker.happens(TWIN_CHANCE):
            maker.random.choice(TWINS)(shape)
        return shape


@dataclasses.dataclass
class Shape:
    """What a job launches, whatever its data."""

    kernels: list  # of each step
    options: list  # of each step; None: as its arguments want it
    repeat: int


def _common_shape(number):
    maker = JobMaker(random.Random(f"shape-{number}"), [], {})
    weights = dict.fromkeys(BATCHED_KERNELS, 1) if maker.happens(BATCHED_SHAPE_CHANCE) else ENTRY_WEIGHTS
    return maker.shape(weights, SHAPED_THREADS_MAX)


def _iterate_otherwise(shape):
    last = shape.options[-1]
    last["iterations"] = last.get("iterations", 1) % ITERATIONS_MAX + 1


def _widen(shape):
    last = shape.options[-1]
    if "grid" in last:
        last["grid"] = [last["grid"][0] + 1, *last["grid"][1:]]
    else:
        last["elements"] += last.get("block", KERNELS[shape.kernels[-1]][1])[0]


def _repeat_otherwise(shape):
    shape.repeat = shape.repeat % REPEAT_MAX + 1


TWINS = [_iterate_otherwise, _widen, _repeat_otherwise]


class JobMaker:
    """One job in the making. Steps come first; buffers come into being as steps ask for them."""

    def __init__(self, chooser, payloads, images):
        self.random = chooser
        self.buffers = {}
        self._payloads = payloads
        self._images = images
        self._floats = set()  # names of buffers that hold floats: other bytes could make NaNs of any kind
        self._barrier_words = set()
        self._wants_large = self.happens(LARGE_JOB_CHANCE)
        self._has_residents = self.happens(RESIDENT_JOB_CHANCE)

    def happens(self, chance):
        return self.random.random() < chance

    def weighted(self, weights):
        return self.random.choices(list(weights), list(weights.values()))[0]

    def shape(self, weights=ENTRY_WEIGHTS, threads_max=None):
        kernels = [self.weighted(weights) for _ in range(self.random.randint(1, STEPS_MAX))]
        is_streamed = self.happens(STREAMED_SHAPE_CHANCE)
        if is_streamed:
            kernels = [("saxpy", "saxpy")]
        options = [
            None if threads_max is None else self._launch(kernel, self.random.randint(1, threads_max))
            for kernel in kernels
        ]
        repeats = not is_streamed and self.happens(REPEAT_CHANCE)
        repeat = self.random.randint(2, REPEAT_MAX) if repeats else 1
        return Shape(kernels, options, repeat)

    def job(self, name, shape):
        steps = [self._step(kernel, options) for kernel, options in zip(shape.kernels, shape.options)]
        for _ in range(self.random.randint(0, UNUSED_BUFFERS_MAX)):
            self.add_buffer(self.random.choice(list(ELEMENT_BYTES)))
        self._name_statics_twice()
        self._shuffle()
        job = {"v": 1, "id": name, "buffers": self.buffers, "steps": steps, "outputs": self._outputs()}
        if shape.repeat > 1:
            job["repeat"] = shape.repeat
        if self.happens(TIMING_CHANCE):
            job["timing"] = True
        if self.happens(DEADLINE_CHANCE):
            job["deadline_ms"] = LATER_MS
        return job

    # ---- buffers ----

    def stored_digest(self):
        return self.random.choice([payload for payload in self._payloads if payload.is_stored]).digest

    def elements(self, name, element):
        return self.buffers[name]["bytes"] // ELEMENT_BYTES[element]

    def _suits(self, name, element, is_written, is_static, bytes_min):
        buffer = self.buffers[name]
        is_float = name in self._floats
        if element == "UINT8":
            suits_type = not (is_float and is_written)
        else:
            suits_type = is_float == (element == "FP32") and buffer.get("datatype", element) == element
        suits_source = not (is_written and "static" in buffer) and not (is_static and "static" not in buffer)
        size = buffer["bytes"]
        return suits_type and suits_source and size >= bytes_min and size % ELEMENT_BYTES[element] == 0

    def take(self, element, is_written=False, is_static=False, bytes_min=0, other_than=None):
        """The name of a buffer that an argument of this element type may take."""
        suited = [
            name
            for name in self.buffers
            if name not in (other_than, *self._barrier_words)
            and self._suits(name, element, is_written, is_static, bytes_min)
        ]
        if suited and self.happens(REUSE_CHANCE):
            return self.random.choice(suited)
        source = "static" if is_static else self._source(may_be_static=not is_written)
        return self.add_buffer(element, source, bytes_min)

    def _source(self, may_be_static=True):
        weights = {name: weight for name, weight in SOURCE_WEIGHTS.items() if may_be_static or name != "static"}
        return self.weighted(weights)

    def add_buffer(self, element, source=None, bytes_min=0):
        name = f"{element.lower()}-{len(self.buffers)}"
        source = source or self._source()
        is_float = element == "FP32"
        if source in ("static", "blob"):
            buffer = self._payload_buffer(source, element, bytes_min)
        else:
            buffer = self._own_buffer(source, element, bytes_min)
        if source != "static" and self.happens(WRITES_CHANCE):
            count = self.random.randint(0, WRITES_MAX)
            buffer["writes"] = [self._write(buffer["bytes"], is_float) for _ in range(count)]
        self._describe(buffer, element)
        self.buffers[name] = buffer
        if is_float:
            self._floats.add(name)
        return name

    def _payload_buffer(self, source, element, bytes_min):
        payload = self.random.choice([
            payload
            for payload in self._payloads
            if payload.is_float == (element == "FP32")
            and len(payload.data) % ELEMENT_BYTES[element] == 0
            and len(payload.data) >= bytes_min
            and (payload.is_stored or source == "static")
        ])
        buffer = {"bytes": len(payload.data), source: payload.digest}
        if source == "static" and (not payload.is_stored or self.happens(STATIC_DATA_CHANCE)):
            buffer["data"] = payload.data
        return buffer

    def _name_statics_twice(self):
        for name, buffer in list(self.buffers.items()):
            if "static" in buffer and "data" in buffer and self.happens(STATIC_TWICE_CHANCE):
                self.buffers[f"{name}-again"] = {"bytes": buffer["bytes"], "static": buffer["static"]}

    def _shuffle(self):
        """The order of a map means nothing."""
        names = list(self.buffers)
        self.random.shuffle(names)
        self.buffers = {name: self.buffers[name] for name in names}

    def _resident_buffer(self, bytes_min):
        """Every job brings a start value; who comes first creates. None where the job has that resident already.

        Not for floats: what many jobs multiply and add grows without bounds.
        """
        size = self.random.choice([size for size in RESIDENT_BYTES if size >= bytes_min])
        name = f"resident-{size}-{self.random.randrange(RESIDENTS_OF_A_SIZE)}"
        if any(buffer.get("resident") == name for buffer in self.buffers.values()):
            return None
        init = {"fill": self.random.randrange(256)}
        if self.happens(0.5):
            init = {"data": self.random.randbytes(size)}
        return {"bytes": size, "resident": name, "init": init}

    def _own_buffer(self, source, element, bytes_min):
        if self._has_residents and source == "data" and element != "FP32" and self.happens(RESIDENT_CHANCE):
            buffer = self._resident_buffer(bytes_min)
            if buffer:
                return buffer
        size = max(self._size(ELEMENT_BYTES[element]), bytes_min)
        if source == "data":
            return {"bytes": size, "data": _random_bytes(self.random, size, element == "FP32")}
        if source == "fill":
            floats = (0, 0x3F, 0xBF)  # 0, and about 0.75 and -0.75
            return {"bytes": size, "fill": self.random.choice(floats) if element == "FP32" else self.random.randrange(256)}
        return {"bytes": size}

    def _size(self, element_bytes):
        if self._wants_large:
            self._wants_large = False
            return self.random.randint(*LARGE_BYTES) // element_bytes * element_bytes
        kind = self.weighted(SIZE_WEIGHTS)
        elements_max = TINY_ELEMENTS if kind == "tiny" else SMALL_BYTES // element_bytes
        return 0 if kind == "empty" else self.random.randint(1, elements_max) * element_bytes

    def _range(self, size, element_bytes=1, empty_chance=0.0):
        """An offset and a number of bytes that lie inside `size`."""
        elements = size // element_bytes
        offset = self.random.randint(0, elements)
        count = 0 if self.happens(empty_chance) else self.random.randint(0, elements - offset)
        return offset * element_bytes, count * element_bytes

    def _write(self, size, is_float):
        offset, count = self._range(size, 4 if is_float else 1, EMPTY_WRITE_CHANCE)
        return {"offset": offset, "data": _random_bytes(self.random, count, is_float)}

    def _describe(self, buffer, element):
        if self.happens(DATATYPE_CHANCE):
            buffer["datatype"] = element
        if self.happens(SHAPE_CHANCE):
            count = buffer["bytes"] // ELEMENT_BYTES[element]
            rows = self.random.choice([rows for rows in (1, 2, 3, 4, 5) if count % rows == 0])
            shapes = [[count], [rows, count // rows], [1, count // rows, rows]]
            buffer["shape"] = self.random.choice([*shapes, []] if count == 1 else shapes)

    # ---- steps ----

    def count(self, elements):
        return self.random.randint(0, elements) if self.happens(PART_CHANCE) else elements

    def _step(self, kernel, options):
        program, entry = kernel
        args, n = getattr(self, "_" + entry)()
        step = {"program": program, "args": args} | (options or self._launch(kernel, n))
        is_first = entry == program or entry == "add_u32"
        if not (is_first and self.happens(DEFAULT_ENTRY_CHANCE)):
            step["entry"] = entry
        if self.happens(PIN_CHANCE):
            step["program"] += "@" + self._images[program]
        return step

    def _launch(self, kernel, n):
        """How many threads, and how often, for n elements."""
        _, default_block = KERNELS[kernel]
        options = self._space() if kernel[1] == "positions" else self._line(n, default_block[0])
        if kernel[1] == "reverse_blocks" and "block" in options:
            options["shared_bytes"] = 4 * options["block"][0]
        if kernel[1] == "turn" and self.happens(PHASES_CHANCE):
            options = dict(PHASED_OPTIONS)
        if self.happens(ITERATIONS_CHANCE):
            options["iterations"] = self.random.randint(2, ITERATIONS_MAX)
        if self.happens(COOPERATIVE_CHANCE) and math.prod(options.get("grid", [n])) <= COOPERATIVE_BLOCKS_MAX:
            options["cooperative"] = True
        return options

    def _space(self):
        """Threads along up to three dimensions."""
        options = {"grid": [self.random.randint(1, 4) for _ in range(self.random.randint(1, 3))]}
        if self.happens(ELEMENTS_CHANCE / 2):  # along x alone
            options = {"elements": self.random.randint(1, 24)}
        if self.happens(BLOCK_CHANCE):
            options["block"] = [self.random.randint(1, 6) for _ in range(self.random.randint(1, 3))]
        return options

    def _line(self, n, block):
        """Threads along x."""
        options = {}
        if self.happens(BLOCK_CHANCE):
            block = self.random.randint(1, BLOCK_THREADS_MAX)
            options["block"] = [block]
        threads = self.random.randint(1, max(n, 1)) if self.happens(UNCOVERED_CHANCE) else max(n, 1)
        if self.happens(ELEMENTS_CHANCE):
            return options | {"elements": threads}
        return options | {"grid": [-(-threads // block)]}

    # The arguments of a kernel, and how many threads they are worth.

    def _word(self, bits=32):
        return self.random.getrandbits(bits)

    def _signed(self, bits):
        return self.random.getrandbits(bits) - 2 ** (bits - 1)

    def _add_u32(self):
        y = self.take("UINT32", is_written=True)
        x = self.take("UINT32")
        n = self.count(min(self.elements(y, "UINT32"), self.elements(x, "UINT32")))
        return [y, x, {"u32": self._word()}, {"u32": n}], n

    def _xor_shift(self):
        y = self.take("UINT32", is_written=True)
        n = self.count(self.elements(y, "UINT32"))
        return [y, {"u32": n}], n

    def _scale_u64(self):
        y = self.take("UINT64", is_written=True)
        n = self.count(self.elements(y, "UINT64"))
        return [y, {"u64": self._word(64)}, {"i64": self._signed(64)}, {"u32": n}], n

    def _reverse(self):
        y = self.take("UINT32", is_written=True)
        x = self.take("UINT32", other_than=y)
        n = self.count(min(self.elements(y, "UINT32"), self.elements(x, "UINT32")))
        return [y, x, {"u32": n}], n

    def _gather(self):
        y = self.take("UINT32", is_written=True)
        table = self.take("UINT32", is_static=True, bytes_min=4)
        n = self.count(self.elements(y, "UINT32"))
        table_n = self.random.randint(1, self.elements(table, "UINT32"))
        return [y, table, {"u32": table_n}, {"u32": n}], n

    def _copy_range(self):
        to = self.take("UINT8", is_written=True)
        source = self.take("UINT8", other_than=to)
        to_offset, room = self._range(self.buffers[to]["bytes"])
        source_offset, size = self._range(self.buffers[source]["bytes"])
        n = min(room, size)
        return [to, {"u64": to_offset}, source, {"u64": source_offset}, {"u64": n}], n

    def _reverse_blocks(self):
        y = self.take("UINT32", is_written=True)
        n = self.count(self.elements(y, "UINT32"))
        return [y, {"u32": n}], n

    def _turn(self):
        y = self.take("UINT32", is_written=True)
        scratch = self.take("UINT32", is_written=True, other_than=y)
        n = self.count(min(self.elements(y, "UINT32"), self.elements(scratch, "UINT32")))
        return [y, scratch, self._barrier_word(), {"u32": n}], n

    def _barrier_word(self):
        """A buffer for a barrier alone: what it leaves there is nobody's business."""
        name = f"word-{len(self.buffers)}"
        self.buffers[name] = {"bytes": 4}
        self._barrier_words.add(name)
        return name

    def _positions(self):
        y = self.take("UINT32", is_written=True)
        n = self.count(self.elements(y, "UINT32"))
        return [y, {"u32": self._word()}, {"u32": n}], n

    def _scalars(self):
        y = self.take("UINT64", is_written=True, bytes_min=6 * 8)
        values = [
            {"u32": self._word()},
            {"i32": self._signed(32)},
            {"u64": self._word(64)},
            {"i64": self._signed(64)},
            {"f32": self.random.uniform(-1e6, 1e6)},
            {"f64": self.random.uniform(-1e6, 1e6)},
        ]
        return [y, *values], 1

    def _words_by_value(self):
        y = self.take("UINT32", is_written=True)
        n = self.count(self.elements(y, "UINT32"))
        return [y, {"u32": n}, {"words": [self._word() for _ in range(WORDS)]}], n

    _words_in_buffer = _words_by_value

    def _draw(self):
        state = self.take("UINT32", is_written=True, bytes_min=8)
        done = self.take("UINT32", is_written=True, bytes_min=4, other_than=state)
        return [state, done, {"u32": self.random.randint(0, DRAWS_MAX)}], 1

    _draw_alone = _draw

    def _saxpy(self):
        x = self.take("FP32")
        y = self.take("FP32", is_written=True)
        n = self.count(min(self.elements(y, "FP32"), self.elements(x, "FP32")))
        return [{"f32": self.random.uniform(-FACTOR_MAX, FACTOR_MAX)}, x, y, {"u32": n}], n

    # ---- outputs ----

    def _outputs(self):
        outputs = []
        for i in range(self.random.randint(0, OUTPUTS_MAX)):
            names = [name for name in self.buffers if name not in self._barrier_words]
            if not names:
                break
            name = self.random.choice(names)
            output = {"buffer": name}
            is_named = any(name == earlier["buffer"] for earlier in outputs) or self.happens(0.5)
            if is_named:
                output["as"] = f"output-{i}"
            if self.happens(RANGE_CHANCE):
                output["offset"], count = self._range(self.buffers[name]["bytes"], empty_chance=EMPTY_RANGE_CHANCE)
                if self.happens(0.7):
                    output["bytes"] = count
            outputs.append(output)
        return outputs
