"""Kernels of other compilers become programs: each compiler that is here makes images of one kernel, y = a x over n numbers;
`programs import` drafts a manifest, and the worker takes it. With a GPU, the cases of each run there.
usage: compilers_test.py BINARY [--driver cuda] [NAME...]; names: nvcc nvrtc triton numba. The Python that runs it has NumPy,
and the compilers that are packages. Without names it tries all, and says which are not here."""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CUDA = """
extern "C" __global__ void scale(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
template <typename T> __global__ void fill(T *y, T with, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = with;
}
template __global__ void fill<float>(float *, float, unsigned);
"""
BLOCK = 256  # elements of one block, of each kernel here
CASES = f"""
import numpy as np

HIDDEN = HIDDEN_ARGS


def reference(arg0, arg1, arg2, arg3, **hidden):
    return {{"arg1": np.float32(arg2) * arg0}}


def cases():
    for n in (1, 255, 256, 1000):
        x = np.arange(n, dtype=np.float32)
        yield {{"_entry": "scale", "_grid": [-(-n // {BLOCK})], "arg0": x, "arg1": np.zeros(n, np.float32), "arg2": 3.0, "arg3": n, **HIDDEN}}
"""


class NotHere(Exception):
    pass


def architecture():
    """Of the GPU here, such as 90; the H100's where there is none."""
    if not shutil.which("nvidia-smi"):
        return "90"
    asked = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True)
    return asked.stdout.split()[0].replace(".", "") if asked.returncode == 0 else "90"


def by_nvcc(room):
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        raise NotHere("there is no nvcc")
    (room / "scale.cu").write_text(CUDA)
    for kind, arch in (("ptx", "compute_75"), ("cubin", f"sm_{architecture()}")):
        subprocess.run([nvcc, f"-{kind}", f"-arch={arch}", "-fmad=false", "-o", room / f"nvcc.{kind}", room / "scale.cu"], check=True)
        yield room / f"nvcc.{kind}"


def by_nvrtc(room):
    from cuda.bindings import nvrtc

    def of(answer):
        assert answer[0] == nvrtc.nvrtcResult.NVRTC_SUCCESS, answer[0]
        return answer[1] if len(answer) > 1 else None

    program = of(nvrtc.nvrtcCreateProgram(CUDA.encode(), b"scale.cu", 0, [], []))
    of(nvrtc.nvrtcCompileProgram(program, 2, [b"--gpu-architecture=compute_75", b"--fmad=false"]))
    text = b" " * of(nvrtc.nvrtcGetPTXSize(program))
    of(nvrtc.nvrtcGetPTX(program, text))
    (room / "nvrtc.ptx").write_bytes(text.rstrip(b"\0"))
    yield room / "nvrtc.ptx"


def by_triton(room):
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget

    # Triton reads the text of a kernel from its file.
    (room / "triton_scale.py").write_text(f"""
import triton
import triton.language as tl


@triton.jit
def scale(x, y, a, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, a * tl.load(x + at, at < n), at < n)
""")
    sys.path.insert(0, str(room))
    from triton_scale import scale

    source = triton.compiler.ASTSource(
        scale, signature={"x": "*fp32", "y": "*fp32", "a": "fp32", "n": "i32", "BLOCK": "constexpr"}, constexprs={"BLOCK": BLOCK})
    made = triton.compile(source, target=GPUTarget("cuda", int(architecture()), 32), options={"num_warps": 4})
    for kind in ("ptx", "cubin"):
        image = made.asm[kind]
        (room / f"triton.{kind}").write_bytes(image if isinstance(image, bytes) else image.encode())
        yield room / f"triton.{kind}"


def by_numba(room):
    import numpy

    if not hasattr(numpy, "row_stack"):  # older releases of Numba ask for it
        numpy.row_stack = numpy.vstack
    from numba import cuda, types

    def scale(x, y, a, n):
        i = cuda.grid(1)
        if i < n:
            y[i] = a * x[i]

    floats = types.CPointer(types.float32)
    text, _ = cuda.compile_ptx(scale, (floats, floats, types.float32, types.uint32), cc=(7, 5))
    (room / "numba.ptx").write_text(text)
    yield room / "numba.ptx"


COMPILERS = {"nvcc": by_nvcc, "nvrtc": by_nvrtc, "triton": by_triton, "numba": by_numba}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def entry_of(binary, folder, name):
    (program,) = [found for found in json.loads(run(binary, "programs", "--json", "--dir", folder)) if found["name"] == name]
    (entry,) = [entry for entry in program["entries"] if entry["name"] == "scale"]
    return entry


def check(binary, image, driver):
    """Imports the image, and runs its cases on a GPU. Returns what to say."""
    name = f"{image.stem}_{image.suffix[1:]}"
    folder = image.parent / "programs"
    run(binary, "programs", "import", image, "--name", name, "--dir", folder)
    manifest = folder / name / "program.yaml"
    if image.suffix == ".cubin":  # which does not say that it is a float
        text = re.sub(r"(- name: scale\n(?:.*\n)*?.*arg2, value: )u32", r"\1f32", manifest.read_text(), count=1)
        manifest.write_text(text)
    args = entry_of(binary, folder, name)["args"]
    kinds = [arg["type"] if arg["role"] == "value" else "buffer" for arg in args]
    assert kinds[:4] in (["buffer", "buffer", "f32", "u32"], ["buffer", "buffer", "f32", "i32"]), kinds
    hidden = [f'"{arg["name"]}": ' + ("0" if arg["role"] == "value" else "np.zeros(1, np.uint8)") for arg in args[4:]]
    (folder / name / "cases.py").write_text(CASES.replace("HIDDEN_ARGS", "{" + ", ".join(hidden) + "}"))
    if driver == "cuda":
        return run(binary, "programs", "test", folder / name, "--driver", "cuda").splitlines()[-1]
    refused = subprocess.run([binary, "programs", "test", folder / name], capture_output=True, text=True)
    assert "has an image for driver: cpu" in refused.stderr, refused.stdout + refused.stderr
    return f"{name}: imported, and the worker takes it"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--driver", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    faults = 0
    os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # whose Python has NumPy
    for name in given.names or COMPILERS:
        with tempfile.TemporaryDirectory(prefix="gpu-worker-compilers-") as room:
            try:
                for image in COMPILERS[name](pathlib.Path(room)):
                    print(check(given.binary.resolve(), image, given.driver), flush=True)
            except (ImportError, NotHere) as absent:
                print(f"{name}: not here: {absent}", flush=True)
                faults += bool(given.names)
            except Exception as fault:  # one that fails leaves the others their turn
                print(f"{name}: {type(fault).__name__}: {fault}", flush=True)
                faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
