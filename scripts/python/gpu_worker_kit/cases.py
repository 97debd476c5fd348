"""`programs test`: runs the cases of a program on a driver and compares them with their reference. An entry with a batched
kernel runs each case as an array job, too. Then the cases run on the CPU under the address sanitizer."""

from __future__ import annotations

import importlib.util
import json
import math
import pathlib
import subprocess
import tempfile
import types
from collections.abc import Mapping
from typing import Any

from . import outside
from .build import build, source_of
from .tools import KitError, binary, program_of, run

try:
    import numpy
except ImportError:
    raise KitError("the cases are arrays of NumPy: pip install numpy") from None

DTYPES = {"BOOL": "?", "UINT8": "u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "i1", "INT16": "<i2",
          "INT32": "<i4", "INT64": "<i8", "FP16": "<f2", "BF16": "<u2", "FP32": "<f4", "FP64": "<f8", None: "u1"}
# Guard bytes behind each buffer that the kernel writes: after the job they show if it wrote there.
GUARD_BYTES = 256
GUARD = 0xA5
INSTANCES = 3  # of the array job that tries a batched kernel
LIMITS = {"message_bytes": "256MiB", "result_bytes": "256MiB", "bytes_in_flight": "1GiB"}
SETTINGS = ("_entry", "_elements", "_grid", "_block", "_shared_bytes")

Case = Mapping[str, Any]
Entry = Mapping[str, Any]


def load(folder: pathlib.Path) -> types.ModuleType:
    path = folder / "cases.py"
    if not path.exists():
        raise KitError(f"there is no {path}; gpu-worker programs new shows what is in it")
    spec = importlib.util.spec_from_file_location("cases", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("cases", "reference"):
        if not hasattr(module, name):
            raise KitError(f"{path} has no function {name}()")
    return module


def entry_of(program: Mapping[str, Any], case: Case) -> Entry:
    name = case.get("_entry", program["entries"][0]["name"])
    for entry in program["entries"]:
        if entry["name"] == name:
            return dict(entry)
    raise KitError(f"a case names the entry '{name}', and the manifest has none of that name")


def arrays_of(entry: Entry, case: Case) -> dict[str, Any]:
    """The buffers of a case, as the manifest types them."""
    given = {name for name in case if name not in SETTINGS}
    wanted = {arg["name"] for arg in entry["args"]}
    if given != wanted:
        raise KitError(f"a case has the arguments {sorted(given)}, and {entry['name']} takes {sorted(wanted)}")
    found = {}
    for arg in entry["args"]:
        if arg["role"] != "value":
            array = numpy.ascontiguousarray(case[arg["name"]])
            if arg["type"] is not None and array.dtype != numpy.dtype(DTYPES[arg["type"]]):
                raise KitError(f"{arg['name']} is {array.dtype}, and the manifest says {arg['type']}")
            found[arg["name"]] = array
    return found


def launch_of(entry: Entry, case: Case, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The launch of the step, as in a job."""
    shape: dict[str, Any] = {}
    if "_grid" in case:
        shape["grid"] = list(case["_grid"])
    else:
        written = [arrays[arg["name"]].size for arg in entry["args"] if arg["role"] in ("out", "inout")]
        shape["elements"] = max(int(case.get("_elements", max(written, default=1))), 1)
    for name in ("block", "shared_bytes"):
        if f"_{name}" in case:
            value = case[f"_{name}"]
            shape[name] = list(value) if name == "block" else int(value)
    return shape


def number(value: Any) -> Any:
    """The value in YAML."""
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return ".nan" if math.isnan(plain) else ".inf" if plain > 0 else "-.inf"
    return plain


def job_of(program: str, entry: Entry, case: Case, arrays: Mapping[str, Any], label: str, count: int = 0) -> str:
    """The job as text that submit --encode reads. All buffers come back. With `count` it is an array of as many instances,
    each with the same bytes in buffers of its own."""
    array = {"count": count} if count else {}
    buffers: dict[str, dict[str, Any]] = {}
    for arg in entry["args"]:
        if arg["role"] != "value":
            guard = bytes([GUARD]) * GUARD_BYTES if arg["role"] in ("out", "inout") else b""
            data = arrays[arg["name"]].tobytes() + guard
            buffers[arg["name"]] = {"data": {"hex": (data * max(count, 1)).hex()}}
            if count:
                buffers[arg["name"]] |= {"each": True, "bytes": len(data)}
    args = [arg["name"] if arg["role"] != "value" else
            {arg["type"]: [number(word) for word in case[arg["name"]]] if arg["type"] == "words" else number(case[arg["name"]])}
            for arg in entry["args"]]
    step = {"program": program, "entry": entry["name"], "args": args, **launch_of(entry, case, arrays)}
    text = json.dumps({"id": label, **array, "buffers": buffers, "steps": [step], "outputs": [{"buffer": name} for name in buffers]})
    return text.replace('".nan"', ".nan").replace('".inf"', ".inf").replace('"-.inf"', "-.inf")


def run_jobs(folder: pathlib.Path, driver: str, texts: list[str]) -> dict[str, dict[str, Any]]:
    """Results by the jobs' ids."""
    with tempfile.TemporaryDirectory(prefix="gpu-worker-test-") as name:
        room = pathlib.Path(name)
        config = room / "worker.yaml"
        # A worker refuses to run beside a broken program, and the one beside this one may be half written.
        (room / "programs").mkdir()
        (room / "programs" / folder.resolve().name).symlink_to(folder.resolve())
        config.write_text(json.dumps({"driver": driver, "programs": {"dir": str(room / "programs")},
                                      "retry": {"max_attempts": 1}, "limits": LIMITS}))
        with open(room / "jobs", "wb") as jobs:
            for text in texts:
                (room / "job.yaml").write_text(text)
                encoded = subprocess.run([binary(), "submit", "--encode", str(room / "job.yaml")], capture_output=True)
                if encoded.returncode != 0:
                    raise KitError(encoded.stderr.decode().rstrip())
                jobs.write(encoded.stdout)
        done = subprocess.run([binary(), "run", "--config", str(config), "--jobs", str(room / "jobs"),
                               "--results", str(room / "results")], capture_output=True, text=True)
        if done.returncode not in (0, 7):
            raise KitError(f"the worker has failed:\n{done.stderr.rstrip()}")
        found = [json.loads(line) for line in run(binary(), "decode", "--json", room / "results").splitlines()]
    return {result["id"]: result for result in found}


def difference(name: str, got: Any, wanted: Any, tolerance: float) -> str:
    """What is wrong with a buffer, or ""."""
    if got.shape != wanted.shape:
        return f"the reference has {wanted.size} elements for {name}, which has {got.size}"
    if got.dtype.kind in "fc":
        wrong = ~numpy.isclose(got.astype(float), wanted.astype(float), rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        wrong = got != wanted
    if not wrong.any():
        return ""
    first = int(numpy.argmax(wrong))
    return f"{name}[{first}] is {got[first]}, and the reference says {wanted[first]} ({int(wrong.sum())} of {got.size} differ)"


def check(module: types.ModuleType, entry: Entry, case: Case, arrays: Mapping[str, Any], result: Mapping[str, Any]) -> list[str]:
    if result["status"] != "ok":
        error = result["error"]
        return [f"{error['code']}: {error['message']}; {error.get('fix', '')}"]
    plain = {name: value for name, value in case.items() if name not in SETTINGS}
    wanted = module.reference(**plain | {name: array.copy() for name, array in arrays.items()})
    found = []
    for output in result["outputs"]:
        name, data = output["name"], bytes.fromhex(output["data"]["hex"])
        before, (role,) = arrays[name], [arg["role"] for arg in entry["args"] if arg["name"] == name]
        got = numpy.frombuffer(data[: before.nbytes], before.dtype)
        guard = data[before.nbytes:]
        if any(byte != GUARD for byte in guard):
            index = before.size + next(i for i, byte in enumerate(guard) if byte != GUARD) // before.itemsize
            found.append(f"{entry['name']} writes {name}[{index}], and {name} has {before.size} elements")
        if role in ("in", "static") and got.tobytes() != before.tobytes():
            changed = int(numpy.argmax(numpy.frombuffer(got.tobytes(), "u1") != numpy.frombuffer(before.tobytes(), "u1")))
            found.append(f"{entry['name']} writes {name}[{changed // before.itemsize}], and the manifest says `buffer: {role}`")
        if name in wanted:
            said = difference(name, got, numpy.asarray(wanted[name], before.dtype).ravel(), getattr(module, "TOLERANCE", 1e-6))
            found += [said] if said else []
    missing = set(wanted) - set(arrays)
    return found + [f"the reference has '{name}', which is no buffer" for name in sorted(missing)]


def compare_instances(entry: Entry, alone: Mapping[str, Any], array: Mapping[str, Any]) -> list[str]:
    """Where the instances of an array, which the batched kernel ran, have other bytes than the same job alone."""
    if alone["status"] != "ok":
        return []
    if array["status"] != "ok":
        return [f"as an array job, {array['error']['code']}: {array['error']['message']}"]
    found = []
    for one, all_of_them in zip(alone["outputs"], array["outputs"]):
        data = bytes.fromhex(one["data"]["hex"])
        whole = bytes.fromhex(all_of_them["data"]["hex"])
        wrong = [i for i in range(INSTANCES) if whole[i * len(data): (i + 1) * len(data)] != data]
        if wrong:
            found.append(f"as an array job, {entry['name']} leaves other bytes in {one['name']} than alone (instance {wrong[0]}): "
                         "look at its batched kernel")
    return found


def test(folder: pathlib.Path, driver: str, with_build: bool) -> int:
    """The exit code."""
    has_source = (folder / f"{folder.resolve().name}.c").exists()
    if with_build and has_source:
        build(folder, None)
    program, module = program_of(folder), load(folder)
    cases = [(entry_of(program, case), case) for case in module.cases()]
    if not cases:
        raise KitError("cases() yields none")
    arrays = [arrays_of(entry, case) for entry, case in cases]
    texts = []
    for number, ((entry, case), buffers) in enumerate(zip(cases, arrays), 1):
        texts.append(job_of(program["name"], entry, case, buffers, f"case {number}"))
        if entry["batched"]:
            texts.append(job_of(program["name"], entry, case, buffers, f"array {number}", INSTANCES))
    results = run_jobs(folder, driver, texts)
    said = []
    for number, ((entry, case), buffers) in enumerate(zip(cases, arrays), 1):
        alone = results[f"case {number}"]
        said.append(check(module, entry, case, buffers, alone))
        if entry["batched"] and not said[-1]:
            said[-1] += compare_instances(entry, alone, results[f"array {number}"])
    if has_source:
        seen = outside.find(source_of(folder), [(entry, case, buffers, launch_of(entry, case, buffers))
                                                for (entry, case), buffers in zip(cases, arrays)])
        said = [[*one, *(text for text in more if text not in one)] for one, more in zip(said, seen)]
    for index, wrong in enumerate(said, 1):
        for text in wrong:
            print(f"case {index}: {text}")
    failed = sum(bool(wrong) for wrong in said)
    print(f"{program['name']} on {driver}: {len(said) - failed} of {len(said)} cases pass"
          + ("" if has_source else "; accesses outside buffers are looked for only where there is the kernel's source"))
    return 1 if failed else 0
