"""`programs import` makes a program from an image that another compiler has made. It reads the image, and writes the manifest
as a draft."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import struct
from typing import Any, Optional

from .tools import KitError, made_aside, program_of

# Each pattern reads on from where the one before it ended, or a piece of at most PIECE_MAX characters: whatever the file says,
# reading it takes time as its size does.
COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.S)
ENTRY = re.compile(r"\.entry\s+([\w$.]+)\s*\(", re.A)
KIND = re.compile(r"\.([busf](?:8|16|32|64))")
NAME_AND_COUNT = re.compile(r"([\w$.]+)(?:\[(\d{1,9})\])?", re.A)
LOAD = re.compile(r"ld\.param(?:::\w+)?(?:\.v\d)?\.(\w+)\s+\{?\s*(%\w+)[^\[]*\[([\w$.]+)")
TO_GLOBAL = re.compile(r"cvta\.to\.global\.u64\s+(%\w+),\s*(%\w+)\s*$")
ADDED = re.compile(r"add\.[su]64\s+(%\w+),\s*(%\w+),\s*(%\w+)\s*$")
ADDRESS = re.compile(r"\b(?:ld|st|atom|red)\.(?!param|shared|local|const)[^\[]*\[(%\w+)")
MOVED = re.compile(r"mov\.[bu]64\s+(%\w+),\s*(%\w+)\s*$")
BLOCK = re.compile(r"\.(?:reqntid|maxntid)((?:[\s,]+\d{1,9}){1,3})")
BRACE, PARENTHESIS, BODY_OR_NONE = re.compile(r"[{}]"), re.compile(r"\)"), re.compile(r"[{;]")
VALUES = {"u32": "u32", "s32": "i32", "b32": "u32", "u64": "u64", "s64": "i64", "b64": "u64", "f32": "f32", "f64": "f64"}
NAME = re.compile(r"[A-Za-z_][\w.-]{0,63}", re.A)
SECTION_NAME_MAX = 1100  # ".nv.info." and a symbol
SYMBOL = re.compile(r"[\w$.]{1,1000}", re.A)  # as the worker takes it
PIECE_MAX = 2000  # of a statement, and of the declaration of a parameter
SHOWN_MAX, LEFT_OUT_SHOWN = 80, 20
IMAGE_BYTES_MAX = 256 << 20  # as for the worker
# A cubin describes a kernel by attributes. Each is named by two numbers: its form and its kind.
KPARAM_INFO = (0x04, 0x17)  # EIATTR_KPARAM_INFO: one parameter
BLOCKS = ((0x04, 0x10), (0x04, 0x05))  # EIATTR_REQNTID, EIATTR_MAX_THREADS: x, y, z
NEW_ABI = 0x41  # files of this version have the architecture in other bits of their flags


@dataclasses.dataclass
class Param:
    """A parameter of a kernel. `kind` is `buffer`, `words` or the type of a value in a manifest, such as `u32`; `size` is in
    bytes; `note` becomes a comment in the manifest."""

    kind: str
    size: int
    note: str


@dataclasses.dataclass
class Kernel:
    symbol: str
    params: list[Param]
    block: list[int]


def shown(text: str) -> str:
    """Text of a file as a person may read it."""
    return ascii(text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "...")


def kernel_of(symbol: str, params: list[Param], block: list[int]) -> Kernel:
    if SYMBOL.fullmatch(symbol) is None:
        raise KitError(f"the name {shown(symbol)} is no symbol")
    return Kernel(symbol, params, block)


def short_name(symbol: str) -> str:
    """Finds the name of the function in a mangled symbol: `add` in _ZN8__main__3addB2v1E and in _Z3addPf."""
    if not symbol.startswith("_Z"):
        return symbol
    at, found, nested = 2 + symbol[2:].startswith("N"), "", symbol[2:3] == "N"
    while True:
        length = re.match(r"\d+", symbol[at:])
        if length is None:
            break
        start = at + length.end()
        found, at = symbol[start: start + int(length[0])], start + int(length[0])
        if not nested:
            break
    found = re.split(r"[$.]", found)[0]
    return found if NAME.fullmatch(found) else symbol


class Body:
    """What the statements of a kernel do with its parameters."""

    def __init__(self, text: str):
        statements = [statement for statement in text.split(";") if len(statement) <= PIECE_MAX]

        def all_of(pattern: re.Pattern[str]) -> list[Any]:
            return [found for statement in statements for found in pattern.findall(statement)]

        loads = all_of(LOAD)
        self.loads: dict[str, list[tuple[str, str]]] = {}  # of a parameter: the type and the register of each
        for kind, register, name in loads:
            self.loads.setdefault(name, []).append((kind, register))
        to_global = all_of(TO_GLOBAL)
        known = {target for target, _ in to_global}
        params = {register for _, register, _ in loads}
        sources: dict[str, list[str]] = {}
        for target, source in all_of(MOVED):
            sources[target] = [source]
        for target, *both in all_of(ADDED):
            if not known & set(both) and not set(both) <= params:
                sources.setdefault(target, []).extend(both)
        # The registers from which addresses in global memory are computed. Of a sum the one is a pointer and the other a
        # distance: where neither is known to be the pointer, both may be, unless both are parameters.
        self.pointers: set[str] = set()
        left = [source for _, source in to_global] + all_of(ADDRESS)
        while left:
            register = left.pop()
            if register not in self.pointers:
                self.pointers.add(register)
                left += sources.get(register, [])


def param_of(declared: str, body: Body) -> Param:
    """Reads the declaration of a parameter: `.param`, its type, attributes, its name. How the body of the kernel uses it shows
    whether it is a pointer."""
    words = declared[:PIECE_MAX].replace(" [", "[").split()
    kinds = [found[1] for found in map(KIND.fullmatch, words[1:-1]) if found is not None]
    named = NAME_AND_COUNT.fullmatch(words[-1])
    if len(declared) > PIECE_MAX or words[0] != ".param" or len(kinds) != 1 or named is None:
        raise KitError(f"the parameter {shown(declared)} cannot be read")
    kind, name, count = kinds[0], named[1], named[2]
    loads = body.loads.get(name, [])
    if count is not None:
        size = int(count) * int(kind[1:]) // 8
        if size % 4 != 0:
            raise KitError(f"the parameter {name} has {size} bytes; a program takes whole words of four")
        return Param("words", size, "a struct, by value")
    if kind in ("u64", "s64", "b64"):
        if ".ptr" in words and loads or any(register in body.pointers for _, register in loads):
            return Param("buffer", 8, "in, out, inout or static")
        if not loads:
            return Param("u64", 8, "the kernel does not use it: give it 0")
    used = loads[0][0] if loads else kind
    value = VALUES.get(used if kind.startswith("b") else kind)
    if value is None:
        raise KitError(f"the parameter {name} is a .{kind}; a program takes u32, i32, u64, i64, f32, f64 and pointers: "
                       "make it one of 32 bits in the kernel")
    return Param(value, 8 if value.endswith("64") else 4, "" if loads else "the kernel does not use it: give it 0")


def block_of(directives: str) -> list[int]:
    """The block that the kernel asks for, or 256 threads."""
    found = BLOCK.search(directives)
    return [int(extent) for extent in found[1].replace(",", " ").split()] if found else [256]


def find(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.search(text, start)
    if found is None:
        raise KitError("the PTX ends within a kernel; make it again")
    return found.start()


def end_of_body(text: str, start: int) -> int:
    """Finds the `}` that closes the `{` before `start`."""
    depth = 1
    for brace in BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    raise KitError("the PTX ends within a kernel; make it again")


def kernels_of_ptx(text: str) -> list[Kernel]:
    text = COMMENT.sub(" ", text)
    found, left_out, at = [], [], 0
    while entry := ENTRY.search(text, at):
        close = find(PARENTHESIS, text, entry.end())
        begin = find(BODY_OR_NONE, text, close) + 1
        at = begin
        if text[begin - 1] == ";":  # it is declared here, and has its body elsewhere
            continue
        at = end_of_body(text, begin)
        declared = [param.strip() for param in text[entry.end():close].split(",") if param.strip()]
        body = Body(text[begin:at])
        try:
            found.append(kernel_of(entry[1], [param_of(param, body) for param in declared], block_of(text[close:begin])))
        except KitError as error:
            left_out.append(f"{short_name(entry[1])} is left out: {error}")
    if left_out and not found:
        raise KitError("\n".join(left_out[:LEFT_OUT_SHOWN]))
    for said in left_out[:LEFT_OUT_SHOWN]:
        print(said)
    return found


def text_at(table: bytes, start: int) -> str:
    return table[start: table.index(b"\0", start, start + SECTION_NAME_MAX)].decode()


def sections_of(image: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit ELF file by their names."""
    (offset,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    heads = [struct.unpack_from("<IIQQQQ", image, offset + i * size) for i in range(count)]
    bytes_of = [(head[4], 0 if head[1] == 8 else head[5]) for head in heads]
    if any(start + length > len(image) for start, length in bytes_of):
        raise ValueError("it is cut")
    if sum(length for _, length in bytes_of) > len(image):
        raise ValueError("its sections overlap")
    table = image[bytes_of[names][0]: sum(bytes_of[names])]
    return {text_at(table, head[0]): image[start: start + length] for head, (start, length) in zip(heads, bytes_of)}


def read_info(info: bytes) -> tuple[list[Param], list[int]]:
    """Reads the attributes of a kernel: its parameters, and the block that it asks for."""
    sizes, at, block = {}, 0, [256]
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form != 0x04:
            continue
        if (form, attribute) == KPARAM_INFO and size >= 12:
            _, ordinal, _, flags = struct.unpack_from("<IHHI", info, at)
            sizes[ordinal] = flags >> 18
        if (form, attribute) in BLOCKS and size == 12:
            block = list(struct.unpack_from("<3I", info, at))
        at += size
    found = []
    for _, size in sorted(sizes.items()):
        if size == 8:
            found.append(Param("buffer", 8, "in, out, inout or static; or value: u64, i64 or f64"))
        elif size == 4:
            found.append(Param("u32", 4, "or i32 or f32"))
        elif size % 4 == 0:
            found.append(Param("words", size, "a struct, by value"))
        else:
            raise KitError(f"a parameter has {size} bytes; a program takes 4, 8, or whole words")
    return found, block


def kernels_of_cubin(image: bytes) -> tuple[list[Kernel], str]:
    """Returns the kernels of a cubin, and its architecture as a manifest writes it, such as 9.0."""
    if len(image) < 64 or image[:5] != b"\x7fELF\x02":
        raise KitError("it is no cubin: no 64-bit ELF file")
    try:
        (flags,) = struct.unpack_from("<I", image, 48)
        sections = sections_of(image)
        kernels = [kernel_of(name, *read_info(sections.get(f".nv.info.{name}", b"")))
                   for name in (section[len(".text."):] for section in sections if section.startswith(".text."))]
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise KitError(f"the cubin is damaged: {error}") from None
    number = flags >> 8 & 0xFF if image[7] == NEW_ABI else flags & 0xFF
    return kernels, f"{number // 10}.{number % 10}"


def is_batched_form(kernel: Kernel, symbols: set[str]) -> bool:
    """Whether BATCHED_KERNEL of kernel.h made it for another kernel. Then it has that kernel's name with `_batched`, and the
    parameters (rows, jobs)."""
    return kernel.symbol.removesuffix("_batched") in symbols - {kernel.symbol} and [
        param.kind for param in kernel.params] == ["buffer", "u32"]


def manifest_of(name: str, kernels: list[Kernel], image: str) -> str:
    lines = [f"name: {name}", "description: imported; say here what it does", "entries:"]
    taken: set[str] = set()
    symbols = {kernel.symbol for kernel in kernels}
    batched = {kernel.symbol for kernel in kernels if is_batched_form(kernel, symbols)}
    for kernel in kernels:
        if kernel.symbol in batched:
            continue
        entry = short_name(kernel.symbol)
        entry = kernel.symbol if entry in taken else entry
        taken.add(entry)
        lines.append(f"  - name: {entry}")
        if entry != kernel.symbol:
            lines.append(f"    symbol: {kernel.symbol}")
        lines.append("    args:" + ("" if kernel.params else " []"))
        for number, param in enumerate(kernel.params):
            what = {"buffer": "buffer: inout", "words": f"value: words, count: {param.size // 4}"}.get(
                param.kind, f"value: {param.kind}")
            lines.append(f"      - {{name: arg{number}, {what}}}" + (f" # {param.note}" if param.note else ""))
        lines.append(f"    block: [{', '.join(map(str, kernel.block))}]")
        if f"{kernel.symbol}_batched" in batched:
            lines.append(f"    batched: {kernel.symbol}_batched")
    return "\n".join([*lines, "images:", f"  - {image}", ""])


def read_image(path: pathlib.Path) -> bytes:
    if path.exists() and not path.is_file():
        raise KitError(f"{path} is not a plain file")
    if path.stat().st_size > IMAGE_BYTES_MAX:
        raise KitError(f"{path} has more than the {IMAGE_BYTES_MAX >> 20} MiB that an image may have")
    return path.read_bytes()


def import_image(image: pathlib.Path, name: Optional[str], folder: pathlib.Path) -> None:
    name = name or re.sub(r"[^\w.-]", "_", image.stem, flags=re.A)
    if NAME.fullmatch(name) is None:
        raise KitError(f"{name!r} is no name for a program; choose one with --name")
    try:
        data = read_image(image)
        if image.suffix == ".cubin":
            kernels, architecture = kernels_of_cubin(data)
            described = f"{{kind: cubin, file: {name}.cubin, architecture: {architecture}}}"
        else:
            kernels = kernels_of_ptx(data.decode())
            described = f"{{kind: ptx, file: {name}.ptx}}"
        if not kernels:
            raise KitError("there is no kernel in it: no .entry")
        with made_aside(folder / name) as draft:
            (draft / f"{name}{image.suffix}").write_bytes(data)
            (draft / "program.yaml").write_text(manifest_of(name, kernels, described))
            program_of(draft)
    except OSError as error:
        raise KitError(f"{error.filename or image}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KitError(f"{image} is no text: PTX is, and a cubin is named .cubin") from None
    print(f"{folder / name}/program.yaml: {', '.join(short_name(kernel.symbol) for kernel in kernels)}\n"
          "next: in it, name the arguments, say which buffers are only read, and give each number that leads to memory its bounds")
