#!/usr/bin/env python3
"""Which folder of worker/ may include which, that it holds, and that no modules include each other in a cycle, nor those of
a Python package.

layering.py [ROOT]   checks ROOT/worker; prints file:line and the rule of each violation
layering.py --table  prints the rules as the table that CONTRIBUTING.md quotes
"""

import pathlib
import re
import sys

# A folder may include itself and what stands here: folders, or single headers. The order is the flow.
LAYERS = {
    "base": [],
    "settings": ["base"],
    "broker": ["base"],
    "state": ["base", "broker/delivery.h"],
    "job": ["base", "broker/delivery.h"],
    "decode": ["base", "broker/delivery.h", "job"],
    "quarantine": ["base", "broker/delivery.h", "state", "job"],
    "key_order": ["base", "job"],
    "program": ["base", "job", "decode/scalar.h", "kernel_cpu.h"],
    "gpu": ["base", "job", "program", "cpu_driver/cpu_driver.h"],
    "plan": ["base", "job", "program", "gpu/limits.h"],
    "http": ["base"],
    "blobs": ["base", "http/client.h"],
    "metrics": ["base", "broker/sink.h", "broker/source.h", "job", "gpu", "state/crash.h"],
    "trace": ["base", "broker/delivery.h", "job", "http/client.h", "metrics/counters.h",
              "metrics/report.h", "state/crash.h"],
    "prepare": ["base", "broker/delivery.h", "job", "program", "gpu", "plan", "blobs/blob.h", "blobs/blobs.h"],
    "batch": ["base", "job", "program", "gpu", "plan", "prepare", "blobs/blob.h", "blobs/spool.h", "metrics",
              "state/state.h"],
    "publish": ["base", "broker", "state", "job", "plan/plan.h", "blobs/blobs.h", "metrics"],
    "pipeline": ["base", "settings", "broker", "state", "job", "decode", "quarantine", "key_order", "program", "gpu", "plan",
                 "blobs/blobs.h", "metrics", "trace", "prepare", "batch", "publish"],
    "process": ["base"],
    "supervise": ["base", "settings", "state", "quarantine", "metrics/board.h", "http", "process"],
    "cli": ["base", "settings", "broker", "state", "decode", "quarantine", "program", "metrics/board.h", "pipeline",
            "process", "supervise"],
    "bench": ["base", "settings", "broker", "decode", "program", "gpu", "pipeline", "state",
              "metrics/board.h", "process", "supervise/probe.h", "cli/cli.h", "cli/kept_config.h", "cli/options.h"],
    "cpu_driver": ["base", "gpu/driver.h", "kernel_cpu.h"],
    "main.c": ["base", "cli", "process/inherited.h"],
}

# Headers of libraries, and the only places that include them.
LIBRARIES = {
    "cuda.h": ["gpu", "cpu_driver"],
    "librdkafka/": ["broker", "bench/kafka_baseline.c"],
    "msgpack": ["base/pack.h", "base/writer.h", "decode", "metrics"],
    "yaml.h": ["base/yaml.c"],
    "openssl/": ["base/digest.c"],
    "curl/": ["http/client.c"],
    "microhttpd.h": ["http/server.c"],
    "assert.h": [],  # base/invariant.h holds in release builds too
}

# Calls of the driver that stand in one place each: everybody else asks that place.
DRIVER_CALLS = {
    "memory_alloc": "gpu/memory.c",
    "memory_free": "gpu/memory.c",
    "host_alloc": "gpu/memory.c",
    "host_free": "gpu/memory.c",
    "module_load": "gpu/image.c",
    "module_unload": "gpu/image.c",
}

# Waits that end by the wall clock, which jumps: what waits asks base/condition.h. Only deadlines and ages are by it.
WALL_CLOCK = {
    r"pthread_cond_(timed|clock)wait\(": ["base/condition.c"],
    r"(sem_timedwait|pthread_mutex_timedlock|mtx_timedlock|pthread_rwlock_timed\w+|mq_timed\w+)\(": [],
    r"\b(CLOCK_REALTIME\w*|gettimeofday\(|time\((NULL|&))": ["base/clock.h", "base/log_line.c"],
}

# What starts and joins threads: the worker's stages ask base/crew.h. A stream of the CPU driver ends under a lock.
THREADS = {r"\bpthread_(create|join|setname_np)\(": ["base/crew.c", "cpu_driver/stream.c"]}

# Who logs: whoever decides what becomes of a failure, once. Everybody else returns errors and stays silent.
LOGGING = {r"\blog_(line|error)\(": ["base/log.h", "base/log.c", "base/log_line.h", "base/log_line.c",
                                     "base/invariant.c", "quarantine", "metrics/reporter.c",
                                     "pipeline", "supervise", "cli"]}

# What a folder must not reach even through the headers that it may include: planning stays plain arithmetic.
UNREACHABLE = {"plan": "cuda.h"}

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    """base/file.c -> base; main.c stands for itself."""
    return path.split("/")[0]


def matches(path, allowed):
    return any(path == item or path.startswith(item + "/") for item in allowed)


def read_includes(worker):
    """{file: [(line, is_quoted, included)]}, files named relative to worker/."""
    includes = {}
    for source in sorted(worker.rglob("*.[ch]")):
        lines = source.read_text(encoding="utf-8").splitlines()
        found = [(number, INCLUDE.match(line)) for number, line in enumerate(lines, 1)]
        name = source.relative_to(worker).as_posix()
        includes[name] = [(number, match[1] == '"', match[2]) for number, match in found if match]
    return includes


def check_own_header(name, included):
    folder = folder_of(name)
    if folder not in LAYERS:
        return f"worker/{folder} is not in the table of tests/layout/layering.py"
    allowed = [folder, *LAYERS[folder]]
    if matches(included, allowed):
        return None
    return f'{folder} may include {", ".join(allowed)}, not "{included}"'


def check_library(name, included):
    for library, places in LIBRARIES.items():
        if included.startswith(library) and not matches(name, places):
            return f'<{included}> belongs to {", ".join(places) or "nobody"}'
    return None


def reaches(includes, name, library, seen):
    """The chain of files through which `name` includes `library`; empty if it does not."""
    seen.add(name)
    for _, is_quoted, included in includes.get(name, []):
        if not is_quoted and included.startswith(library):
            return [name]
        if is_quoted and included not in seen:
            chain = reaches(includes, included, library, seen)
            if chain:
                return [name, *chain]
    return []


def stray_driver_calls(worker):
    """Driver calls outside of their one place; the CPU driver, which implements them, is none of that."""
    calls = re.compile(r"\b(" + "|".join(DRIVER_CALLS) + r")\(")
    for source in sorted(worker.rglob("*.c")):
        name = source.relative_to(worker).as_posix()
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            for match in calls.finditer(line):
                if name != DRIVER_CALLS[match[1]] and folder_of(name) != "cpu_driver":
                    yield f"worker/{name}:{number}: {match[1]}() is called only in {DRIVER_CALLS[match[1]]}"


def stray_calls(worker, rules, instead):
    """Lines that match an expression of `rules` outside of its places, which are files or folders."""
    for source in sorted(worker.rglob("*.[ch]")):
        name = source.relative_to(worker).as_posix()
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            for call, places in rules.items():
                if re.search(call, line) and not matches(name, places):
                    yield f"worker/{name}:{number}: {instead}"


def module_of(path):
    """decode/job.h and decode/job.c are one module: decode/job."""
    return path.rsplit(".", 1)[0]


def read_modules(includes):
    """{module: {module of the same folder that it includes: "file:line"}}."""
    modules = {module_of(name): {} for name in includes}
    for name, lines in includes.items():
        module = module_of(name)
        for number, is_quoted, included in lines:
            other = module_of(included)
            if is_quoted and other in modules and other != module and folder_of(other) == folder_of(module):
                modules[module].setdefault(other, f"worker/{name}:{number}")
    return modules


def way_back(modules, module):
    """The shortest way from `module` along includes to itself; empty where there is none."""
    came_from, queue = {}, [module]
    for here in queue:
        for other in modules[here]:
            if other not in came_from:
                came_from[other] = here
                queue.append(other)
    if module not in came_from:
        return []
    way = [module, came_from[module]]
    while way[-1] != module:
        way.append(came_from[way[-1]])
    return way[::-1]


def read_python_modules(package):
    """{module: {module of the same package that it imports: "file:line"}}; imports for types alone count, too."""
    modules = {}
    for source in sorted(package.glob("*.py")):
        imported = modules[f"{package.name}.{source.stem}"] = {}
        for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            found = re.match(r"\s*from \.(\w*) import (.*)", line)
            for other in (found[1] or found[2]).split(", ") if found else []:
                imported.setdefault(f"{package.name}.{other}", f"scripts/python/{package.name}/{source.name}:{number}")
    return modules


def cycles(modules):
    """Modules that include each other, also by way of others."""
    for module in modules:
        way = way_back(modules, module)
        if way:
            yield f"{modules[module][way[1]]}: a cycle of includes: {' -> '.join(way)}"


def violations(root):
    """Lines of "file:line: rule", in the order of the files."""
    includes = read_includes(root / "worker")
    worker = root / "worker"
    found = [*stray_driver_calls(worker),
             *stray_calls(worker, WALL_CLOCK, "waits and times are asked of base/condition.h and base/clock.h"),
             *stray_calls(worker, THREADS, "threads are started and joined by base/crew.h"),
             *stray_calls(worker, LOGGING, "errors are returned, and logged by whoever decides what becomes of them"),
             *cycles(read_modules(includes))]
    for package in sorted((root / "scripts" / "python").glob("*/")):
        found += cycles(read_python_modules(package))
    for name, lines in includes.items():
        for number, is_quoted, included in lines:
            rule = (check_own_header if is_quoted else check_library)(name, included)
            if rule:
                found.append(f"worker/{name}:{number}: {rule}")
        library = UNREACHABLE.get(folder_of(name))
        chain = reaches(includes, name, library, set()) if library else []
        if chain:
            found.append(f'worker/{name}:1: must not reach <{library}>, yet does through {" -> ".join(chain)}')
    return found


def table():
    rows = ["| folder | may include, besides itself |", "| --- | --- |"]
    rows += [f'| `{folder}` | {" ".join(f"`{item}`" for item in allowed)} |' for folder, allowed in LAYERS.items()]
    rows += ["", "| library header | included only in |", "| --- | --- |"]
    rows += [f'| `{name}` | {" ".join(f"`{item}`" for item in places)} |' for name, places in LIBRARIES.items()]
    return "\n".join(rows)


def main(arguments):
    if arguments == ["--table"]:
        print(table())
        return 0
    root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).parents[2]
    found = violations(root)
    print("\n".join(found) if found else "every include follows the table")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
