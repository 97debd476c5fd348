"""`programs import` makes a program from an image that another compiler has made. It reads the image, and writes the manifest
as a draft."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shutil
import struct
from typing import Optional

from .tools import KitError, program_of

ENTRY = re.compile(r"\.entry\s+([\w$.]+)\s*\(([^)]*)\)([^{;]*)\{", re.S)
PARAM = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)([^,]*?)([\w$.]+)\s*(?:\[(\d+)\])?\s*$", re.S)
KIND = re.compile(r"[busf](8|16|32|64)")
LOAD = re.compile(r"ld\.param(?:::\w+)?(?:\.v\d)?\.(\w+)\s+\{?\s*(%\w+)[^;\[]*\[([\w$.]+)")
TO_GLOBAL = re.compile(r"cvta\.to\.global\.u64\s+(%\w+),\s*(%\w+)\s*;")
ADDED = re.compile(r"add\.[su]64\s+(%\w+),\s*(%\w+),\s*(%\w+)\s*;")
ADDRESS = re.compile(r"\b(?:ld|st|atom|red)\.(?!param|shared|local|const)[^;\[]*\[(%\w+)")
MOVED = re.compile(r"mov\.[bu]64\s+(%\w+),\s*(%\w+)\s*;")
BLOCK = re.compile(r"\.(?:reqntid|maxntid)\s+([\d\s,]+)")
TARGET = re.compile(r"\.target\s+sm_(\d+)")
VALUES = {"u32": "u32", "s32": "i32", "b32": "u32", "u64": "u64", "s64": "i64", "b64": "u64", "f32": "f32", "f64": "f64"}
NAME = re.compile(r"[A-Za-z_][\w.-]{0,63}")
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


def body_of(text: str, start: int) -> str:
    """Returns the text from `start`, which is behind a `{`, to the `}` that closes it."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[start:at]
    raise KitError("the PTX ends within a kernel; make it again")


def pointers_of(body: str) -> set[str]:
    """The registers from which addresses in global memory are computed. Of a sum the one is a pointer and the other a
    distance: where neither is known to be the pointer, both may be, unless both are parameters."""
    known = {target for target, _ in TO_GLOBAL.findall(body)}
    params = {register for _, register, _ in LOAD.findall(body)}
    sources: dict[str, list[str]] = {target: [source] for target, source in MOVED.findall(body)}
    for target, *both in ADDED.findall(body):
        if not known & set(both) and not set(both) <= params:
            sources.setdefault(target, []).extend(both)
    found: set[str] = set()
    left = [source for _, source in TO_GLOBAL.findall(body)] + ADDRESS.findall(body)
    while left:
        register = left.pop()
        if register not in found:
            found.add(register)
            left += sources.get(register, [])
    return found


def param_of(declared: str, body: str) -> Param:
    """Reads the declaration of a parameter. How the body of the kernel uses it shows whether it is a pointer."""
    found = PARAM.search(declared.strip())
    if found is None or KIND.fullmatch(found[1]) is None:
        raise KitError(f"the parameter '{declared.strip()}' cannot be read")
    kind, attributes, name, count = found.groups()
    loads = [load for load in LOAD.findall(body) if load[2] == name]
    if count is not None:
        size = int(count) * int(kind[1:]) // 8
        if size % 4 != 0:
            raise KitError(f"the parameter {name} has {size} bytes; a program takes whole words of four")
        return Param("words", size, "a struct, by value")
    if kind in ("u64", "s64", "b64"):
        pointers = pointers_of(body)
        if ".ptr" in attributes and loads or any(register in pointers for _, register, _ in loads):
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
    return [int(extent) for extent in found[1].replace(" ", "").strip().split(",")] if found else [256]


def kernels_of_ptx(text: str) -> list[Kernel]:
    text = re.sub(r"/\*.*?\*/", " ", re.sub(r"//[^\n]*", "", text), flags=re.S)
    found, left_out = [], []
    for entry in ENTRY.finditer(text):
        body = body_of(text, entry.end())
        declared = [param for param in entry[2].split(",") if param.strip()]
        try:
            found.append(Kernel(entry[1], [param_of(param, body) for param in declared], block_of(entry[3])))
        except KitError as error:
            left_out.append(f"{short_name(entry[1])} is left out: {error}")
    if left_out and not found:
        raise KitError("\n".join(left_out))
    for said in left_out:
        print(said)
    return found


def text_at(table: bytes, start: int) -> str:
    return table[start: table.index(b"\0", start)].decode()


def sections_of(image: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit ELF file by their names."""
    (offset,) = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    heads = [struct.unpack_from("<IIQQQQ", image, offset + i * size) for i in range(count)]
    if any(head[1] != 8 and head[4] + head[5] > len(image) for head in heads):
        raise ValueError("it is cut")
    table = image[heads[names][4]: heads[names][4] + heads[names][5]]
    return {text_at(table, head[0]): b"" if head[1] == 8 else image[head[4]: head[4] + head[5]] for head in heads}


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
        kernels = [Kernel(name, *read_info(sections.get(f".nv.info.{name}", b"")))
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


def import_image(image: pathlib.Path, name: Optional[str], folder: pathlib.Path) -> None:
    name = name or re.sub(r"[^\w.-]", "_", image.stem)
    if NAME.fullmatch(name) is None:
        raise KitError(f"'{name}' is no name for a program; choose one with --name")
    try:
        if image.suffix == ".cubin":
            kernels, architecture = kernels_of_cubin(image.read_bytes())
            described = f"{{kind: cubin, file: {name}.cubin, architecture: {architecture}}}"
        else:
            kernels = kernels_of_ptx(image.read_text())
            described = f"{{kind: ptx, file: {name}.ptx}}"
        if not kernels:
            raise KitError("there is no kernel in it: no .entry")
        (folder / name).mkdir(parents=True)
        shutil.copyfile(image, folder / name / f"{name}{image.suffix}")
    except FileExistsError:
        raise KitError(f"{folder / name} exists; choose another name with --name") from None
    except OSError as error:
        raise KitError(f"{error.filename or image}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KitError(f"{image} is no text: PTX is, and a cubin is named .cubin") from None
    (folder / name / "program.yaml").write_text(manifest_of(name, kernels, described))
    program_of(folder / name)
    print(f"{folder / name}/program.yaml: {', '.join(short_name(kernel.symbol) for kernel in kernels)}\n"
          "next: in it, name the arguments, say which buffers are only read, and give each number that leads to memory its bounds")
