"""`programs build`: a kernel becomes PTX and a shared object for the CPU driver."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Sequence
from typing import Optional

from .tools import KitError, headers, program_of, run

# As config/programs/gpu_program.cmake does it. Only fma_f32() fuses multiplications and additions, so that results agree.
CLANG_PTX = ["-x", "cuda", "-std=c++17", "--cuda-device-only", "--cuda-gpu-arch=sm_70", "-nocudainc", "-nocudalib",
             "-ffreestanding", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-S"]
NVCC_PTX = ["-x", "cu", "-std=c++17", "-ptx", "-arch=compute_75", "-O3", "-fmad=false"]
CPU = ["-x", "c", "-O3", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra", "-Wno-unused-parameter"]
SHARED = ["-shared", "-fPIC", "-Wl,-z,defs"]
EXTERN = re.compile(r"^[ \t]*\.extern[ \t]+\.func[^;]*", re.M)


def c_compiler() -> str:
    found = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not found:
        raise KitError("there is no C compiler on the path; install gcc or clang, or set CC")
    return found


def ptx_compiler(given: Optional[str]) -> str:
    found = given or shutil.which("clang") or shutil.which("nvcc")
    if not found:
        raise KitError("nothing compiles kernels to PTX here; install clang (14 or newer) or nvcc, or take the PTX out of program.yaml")
    return found


def source_of(folder: pathlib.Path) -> pathlib.Path:
    source = folder / f"{folder.resolve().name}.c"
    if not source.exists():
        raise KitError(f"there is no {source}; gpu-worker programs new makes one")
    return source


def read_manifest(folder: pathlib.Path) -> str:
    path = folder / "program.yaml"
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise KitError(f"there is no {path}; gpu-worker programs new shows what is in it") from None
    except UnicodeDecodeError:
        raise KitError(f"{path} is no text in UTF-8") from None


def make_ptx(source: pathlib.Path, image: pathlib.Path, compiler: str) -> None:
    flags = NVCC_PTX if "nvcc" in pathlib.Path(compiler).name else CLANG_PTX
    run(compiler, *flags, "-I", headers(), "-o", image, source)
    missing = [line.strip() for line in EXTERN.findall(image.read_text()) if "__assertfail" not in line]
    if missing:
        raise KitError("the kernel calls functions that exist on no GPU; kernel.h has its own:\n  " + "\n  ".join(missing))


def make_cpu(sources: Sequence[pathlib.Path], image: pathlib.Path, flags: Sequence[str] = SHARED) -> None:
    """Compiles a kernel for the CPU: what is tested as what is shipped, but for `flags`."""
    run(c_compiler(), *CPU, *flags, "-I", headers(), "-o", image, *sources, "-lm")


def install(image: pathlib.Path, folder: pathlib.Path) -> None:
    """Puts the image into the folder in one step."""
    draft = folder / f"{image.name}.new"
    shutil.copyfile(image, draft)
    draft.replace(folder / image.name)


def build(folder: pathlib.Path, compiler: Optional[str]) -> None:
    """Compiles the images that the manifest names, lets the worker compare them with it, and keeps those that it takes."""
    source, manifest = source_of(folder), read_manifest(folder)
    made: dict[str, pathlib.Path] = {}
    with tempfile.TemporaryDirectory(prefix="gpu-worker-build-") as room:
        draft = pathlib.Path(room) / folder.resolve().name
        shutil.copytree(folder, draft)
        image = draft / source.name
        if re.search(r"kind:\s*ptx", manifest):
            made["ptx"] = image.with_suffix(".ptx")
            make_ptx(source, made["ptx"], ptx_compiler(compiler))
        if re.search(r"kind:\s*cpu", manifest):
            made["cpu"] = image.with_suffix(".so")
            make_cpu([source], made["cpu"])
        program_of(draft)
        for image in made.values():
            install(image, folder)
    print(f"built {folder.resolve().name}: {', '.join(made)}", flush=True)
