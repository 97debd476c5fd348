"""What a job must give back, spelled out step by step: no batches, no devices, one job after the other.

    answer = Model(payloads).run(job)

The kernels are those of mix/ and saxpy; all of them are exact, so results are compared bit for bit.
"""

import dataclasses

import numpy

U8, U32, U64, F32, F64 = (numpy.dtype(name) for name in ("<u1", "<u4", "<u8", "<f4", "<f8"))
NARROW_BYTES, WIDE_BYTES = 4, 8  # of an argument; a buffer is a pointer
NARROW_TYPES = ("u32", "i32", "f32")


@dataclasses.dataclass
class Launch:
    grid: tuple
    block: tuple

    def first(self, n):
        """How many of n elements have a thread, where threads are numbered along x."""
        return min(n, self.grid[0] * self.block[0])


# ---- kernels: a launch and its arguments; buffers are arrays of bytes, changed in place ----


def _add_u32(launch, y, x, k, n):
    n = launch.first(n)
    y.view(U32)[:n] += x.view(U32)[:n] * U32.type(k)


def _xor_shift(launch, y, n):
    values = y.view(U32)[: launch.first(n)]
    values ^= values << U32.type(13)
    values ^= values >> U32.type(17)
    values ^= values << U32.type(5)


def _scale_u64(launch, y, factor, addend, n):
    values = y.view(U64)[: launch.first(n)]
    values *= U64.type(factor)
    values += U64.type(addend % 2**64)


def _reverse(launch, y, x, n):
    for i in range(launch.first(n)):
        y.view(U32)[n - 1 - i] = x.view(U32)[i]


def _gather(launch, y, table, table_n, n):
    n = launch.first(n)
    y.view(U32)[:n] += table.view(U32)[numpy.arange(n) % table_n]


def _copy_range(launch, to, to_offset, source, source_offset, n):
    n = launch.first(n)
    to[to_offset : to_offset + n] = source[source_offset : source_offset + n]


def _reverse_blocks(launch, y, n):
    for start in range(0, launch.first(n), launch.block[0]):
        part = y.view(U32)[start : min(start + launch.block[0], n)]
        part[:] = part[::-1].copy()


def _turn(launch, y, scratch, _word, n):
    first = launch.first(n)
    scratch.view(U32)[:first] = y.view(U32)[:first]
    y.view(U32)[n - first : n] = scratch.view(U32)[:first][::-1] + U32.type(1)


def _positions(launch, y, k, n):
    sides = (*reversed(launch.grid), *reversed(launch.block))
    block_z, block_y, block_x, z, y_, x = (axis.ravel() for axis in numpy.indices(sides, dtype=U32))
    values = U32.type(k) + x + (y_ << 4) + (z << 8) + (block_x << 12) + (block_y << 20) + (block_z << 26)
    n = min(n, values.size)
    y.view(U32)[:n] += values[:n]


def _scalars(launch, y, a, b, c, d, e, f):
    bits = [a, b % 2**64, c, d % 2**64, int(numpy.array(e, F32).view(U32)), int(numpy.array(f, F64).view(U64))]
    y.view(U64)[:6] += numpy.array(bits, U64)


def _words(launch, y, n, words):
    n = launch.first(n)
    y.view(U32)[:n] += numpy.resize(numpy.array(words, U32), n)


def _draw(launch, state, done, last):
    """A round of a long job."""
    state, done = state.view(U32), done.view(U32)
    if done[0] != 0:
        return
    state[0] = (int(state[0]) + 1) % 2**32
    state[1] = (int(state[1]) * 1664525 + 1013904223) % 2**32
    if state[0] == last:
        done[0] = last


def _saxpy(launch, a, x, y, n):
    """Rounded after the product and after the sum."""
    n = launch.first(n)
    product = F32.type(a) * x.view(F32)[:n]
    y.view(F32)[:n] = product + y.view(F32)[:n]


# (program, entry): the kernel, and the block of its manifest
KERNELS = {
    ("mix", "add_u32"): (_add_u32, (256, 1, 1)),
    ("mix", "xor_shift"): (_xor_shift, (128, 1, 1)),
    ("mix", "scale_u64"): (_scale_u64, (64, 1, 1)),
    ("mix", "reverse"): (_reverse, (256, 1, 1)),
    ("mix", "gather"): (_gather, (256, 1, 1)),
    ("mix", "copy_range"): (_copy_range, (256, 1, 1)),
    ("mix", "reverse_blocks"): (_reverse_blocks, (64, 1, 1)),
    ("mix", "turn"): (_turn, (256, 1, 1)),
    ("mix", "positions"): (_positions, (4, 4, 2)),
    ("mix", "scalars"): (_scalars, (32, 1, 1)),
    ("mix", "words_by_value"): (_words, (256, 1, 1)),
    ("mix", "words_in_buffer"): (_words, (256, 1, 1)),
    ("mix", "draw"): (_draw, (1, 1, 1)),
    ("mix", "draw_alone"): (_draw, (1, 1, 1)),
    ("saxpy", "saxpy"): (_saxpy, (256, 1, 1)),
}
WRITTEN_ARGS = {"saxpy": (2,), "turn": (0, 1), "draw": (0, 1), "draw_alone": (0, 1)}  # the arguments that a kernel writes; of the others it is the first
DEFAULT_ENTRIES = {"mix": "add_u32", "saxpy": "saxpy"}


def kernel_of(step):
    """The (program, entry) that a step launches."""
    program = step["program"].split("@")[0]
    return program, step.get("entry", DEFAULT_ENTRIES[program])


# ---- jobs ----


@dataclasses.dataclass
class Answer:
    outputs: list  # as in a result
    telemetry: dict  # what follows from the job alone; the rest depends on what the worker has seen before
    static_bytes: list  # of each static that is not empty: either uploaded (a miss) or saved (a hit)
    generations: dict  # of residents, after the job


@dataclasses.dataclass
class Resident:
    array: numpy.ndarray
    generation: int = 0


class Model:
    """Remembers residents: the valid jobs that use them must run in their order."""

    def __init__(self, payloads):
        """`payloads`: what the blob store holds, {digest: bytes}."""
        self.payloads = payloads
        self._residents = {}

    def run(self, job):
        created_bytes = self._create_residents(job)
        brought = {buffer["static"]: buffer["data"] for buffer in job["buffers"].values() if {"static", "data"} <= set(buffer)}
        buffers = {name: self._first_bytes(buffer, self.payloads | brought) for name, buffer in job["buffers"].items()}
        for _ in range(job.get("repeat", 1)):
            for step in job["steps"]:
                _run_step(step, buffers)
        outputs = [_read(job["buffers"][output["buffer"]], buffers, output) for output in job["outputs"]]
        telemetry = _telemetry(job, outputs)
        telemetry["h2d_bytes"] += created_bytes
        return Answer(outputs, telemetry, _static_bytes(job), self._count_updates(job))

    def lacks_resident(self, job):
        """Whether the job reads a resident that no job has created."""
        return any("resident" in buffer and "init" not in buffer and buffer["resident"] not in self._residents
                   for buffer in job["buffers"].values())

    def _create_residents(self, job):
        """How many bytes of start values were uploaded."""
        uploaded_bytes = 0
        for buffer in job["buffers"].values():
            if "resident" not in buffer or buffer["resident"] in self._residents:
                continue
            data = buffer["init"].get("data")
            array = numpy.full(buffer["bytes"], buffer["init"].get("fill", 0), U8)
            if data is not None:
                array[:] = numpy.frombuffer(data, U8)
                uploaded_bytes += len(data)
            self._residents[buffer["resident"]] = Resident(array)
        return uploaded_bytes

    def _count_updates(self, job):
        written = {step["args"][i] for step in job["steps"] for i in WRITTEN_ARGS.get(kernel_of(step)[1], (0,))}
        generations = {}
        for name, buffer in job["buffers"].items():
            if "resident" in buffer:
                resident = self._residents[buffer["resident"]]
                resident.generation += name in written or bool(buffer.get("writes"))
                generations[buffer["resident"]] = resident.generation
        return generations

    def _first_bytes(self, buffer, payloads):
        if "resident" in buffer:
            array = self._residents[buffer["resident"]].array
        else:
            array = numpy.full(buffer["bytes"], buffer.get("fill", 0), U8)
        digest = buffer.get("static", buffer.get("blob"))
        if "data" in buffer:
            array[:] = numpy.frombuffer(buffer["data"], U8)
        elif digest is not None:
            array[:] = numpy.frombuffer(payloads[digest], U8)
        for write in buffer.get("writes", []):
            end = write["offset"] + len(write["data"])
            array[write["offset"] : end] = numpy.frombuffer(write["data"], U8)
        return array


def _three(sides):
    return (*sides, *(1,) * (3 - len(sides)))


def _geometry(step):
    _, default_block = KERNELS[kernel_of(step)]
    block = _three(step.get("block", default_block))
    grid = step["grid"] if "grid" in step else [-(-step["elements"] // block[0])]
    return Launch(_three(grid), block)


def _run_step(step, buffers):
    kernel, _ = KERNELS[kernel_of(step)]
    args = [buffers[arg] if isinstance(arg, str) else next(iter(arg.values())) for arg in step["args"]]
    for _ in range(step.get("iterations", 1)):
        kernel(_geometry(step), *args)


def _read(buffer, buffers, output):
    offset = output.get("offset", 0)
    size = output.get("bytes", buffer["bytes"] - offset)
    ret = {"name": output.get("as", output["buffer"])}
    if "datatype" in buffer:
        ret["datatype"] = buffer["datatype"]
    if "shape" in buffer and size == buffer["bytes"]:  # whole; of a part the shape says nothing
        ret["shape"] = buffer["shape"]
    return ret | {"data": buffers[output["buffer"]][offset : offset + size].tobytes()}


def _bytes_of_arg(arg):
    kind = next(iter(arg)) if isinstance(arg, dict) else None
    return 4 * len(arg[kind]) if kind == "words" else NARROW_BYTES if kind in NARROW_TYPES else WIDE_BYTES


def _param_bytes(step):
    return sum(_bytes_of_arg(arg) for arg in step["args"])


def _telemetry(job, outputs):
    own = [buffer for buffer in job["buffers"].values() if "static" not in buffer]
    writes = [write for buffer in own for write in buffer.get("writes", [])]
    launches = [(step, job.get("repeat", 1) * step.get("iterations", 1)) for step in job["steps"]]
    return {
        # cold statics come on top
        "h2d_bytes": sum(buffer["bytes"] for buffer in own if "data" in buffer or "blob" in buffer)
        + sum(len(write["data"]) for write in writes),
        "d2h_bytes": sum(len(output["data"]) for output in outputs),
        "param_bytes": sum(times * _param_bytes(step) for step, times in launches),
        "kernel_launches": sum(times for _, times in launches),
    }


def _static_bytes(job):
    return [buffer["bytes"] for buffer in job["buffers"].values() if "static" in buffer and buffer["bytes"] > 0]
