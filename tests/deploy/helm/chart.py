"""The chart as helm renders it, its documents as a cluster would check them, and its pods as a kubelet would fill them.
Tests name the tools' folder (scripts/chart-tools) and the build folder on their command line, in this order."""

import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

TOOLS, BUILD = pathlib.Path(sys.argv.pop(1)), pathlib.Path(sys.argv.pop(1))
sys.path.append(str(TOOLS / "python"))

import jsonschema  # noqa: E402
import kubernetes_validate  # noqa: E402
import yaml  # noqa: E402

HERE = pathlib.Path(__file__).parent
CHART = HERE.parents[2] / "deploy/helm/gpu-worker"
OBSERVABILITY = HERE.parents[2] / "deploy/observability"
WORKER = BUILD / "bin/gpu-worker"
KUBERNETES = "1.34"
NEWEST = HERE.parents[1] / "flow/with_newest_librdkafka"  # Debian 12's knows no OIDC
CRDS = ("ScaledObject", "TriggerAuthentication", "PodMonitor")
IMAGE = ("--set", "image.repository=registry.example/gpu-worker")


def run(*command, check=True, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def helm(*arguments, **options):
    return run(TOOLS / "bin/helm", *arguments, **options)


class StrictLoader(yaml.CSafeLoader):
    """Python's YAML would take the last of two equal keys, and a cluster refuses them."""


def mapping(loader, node):
    keys = [loader.construct_object(key) for key, _ in node.value]
    twice = {key for key in keys if keys.count(key) > 1}
    if twice:
        raise AssertionError(f"line {node.start_mark.line + 1}: {twice} stand twice in a map")
    return yaml.CSafeLoader.construct_mapping(loader, node, deep=True)


StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


def render(values, *options, chart=CHART):
    printed = helm("template", "sweep", chart, "--namespace", "jobs", "--values", values, *IMAGE, *options).stdout
    return [document for document in yaml.load_all(printed, StrictLoader) if document]


def find(documents, kind, suffix=""):
    found = [each for each in documents if each["kind"] == kind and each["metadata"]["name"].endswith(suffix)]
    assert len(found) == 1, f"{len(found)} objects of kind {kind}"
    return found[0]


def kinds(documents):
    return sorted(document["kind"] for document in documents)


# ---- as a cluster checks them ----

def strict(schema):
    """The schema of a custom resource with all keys refused that it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: strict(value) for key, value in schema.items()}
    if schema.get("x-kubernetes-int-or-string"):
        result.pop("type", None)
    if isinstance(schema.get("properties"), dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        result.setdefault("additionalProperties", False)
    return result


def crd_schemas():
    for path in sorted((TOOLS / "crds").iterdir()):
        crd = yaml.load(path.read_text(), yaml.CSafeLoader)
        for version in crd["spec"]["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object"}
            yield (crd["spec"]["names"]["kind"], f"{crd['spec']['group']}/{version['name']}"), schema


def check_rules(document):
    """The specification is a file of rules, which promtool reads, strictly as well."""
    assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as rules:
        yaml.safe_dump(document["spec"], rules)
        rules.flush()
        checked = run("promtool", "check", "rules", rules.name, check=False)
    if checked.returncode != 0:
        raise jsonschema.ValidationError(checked.stderr)


def validate(document, crds):
    """Raises where a key is unknown, a value has the wrong type, or a key is missing."""
    key = (document["kind"], document["apiVersion"])
    if document["kind"] == "PrometheusRule":
        check_rules(document)
    if key in crds:
        jsonschema.validate(document, crds[key])
    if key in crds or document["kind"] == "PrometheusRule":
        # The metadata is that of every object: a ConfigMap of the same metadata stands in for it.
        document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": document["metadata"]}
    kubernetes_validate.validate(document, KUBERNETES, strict=True)


# ---- as a kubelet fills them ----

def write_keys(folder, files):
    """A volume's files as the kubelet lays them out: links to a folder that it replaces as a whole."""
    (folder / "..2026").mkdir(parents=True)
    (folder / "..data").symlink_to("..2026")
    for path, content in files.items():
        target = folder / "..2026" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        first = path.split("/")[0]
        if not (folder / first).is_symlink():
            (folder / first).symlink_to(f"..data/{first}")


def volume_files(volume, objects):
    """What the volume shows; None for one that begins empty, or that this test knows nothing of."""
    source = volume.get("configMap") or volume.get("secret")
    if source is None:
        return None
    files = objects[source.get("name") or source["secretName"]]
    if "items" in source:
        return {item["path"]: files[item["key"]] for item in source["items"]}
    return files


class Pod:
    """A pod's container, with its mounts in `folder`; `objects` are ConfigMaps and Secrets by name."""

    def __init__(self, spec, objects, folder):
        self.spec, self.folder = spec, folder
        self.container = spec["containers"][0]
        self.mounts = {mount["mountPath"]: mount["name"] for mount in self.container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
        for path, name in sorted(self.mounts.items()):
            files = volume_files(volumes.get(name, {}), objects)
            if files is None:
                self.outside(path).mkdir(parents=True, exist_ok=True)
            else:
                write_keys(self.outside(path), files)

    def outside(self, path):
        return self.folder / path.lstrip("/")

    def covers(self, path):
        """Whether the path is in a volume, or a folder with nothing but volumes in it."""
        return any(path == mount or path.startswith(f"{mount}/") or mount.startswith(f"{path}/") for mount in self.mounts)

    def environment(self):
        known = {"metadata.name": "sweep-gpu-worker-0", "status.podIP": "127.0.0.1"}
        names = {"PATH": "/usr/bin:/bin"}
        for each in self.container["env"]:
            field = each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            names[each["name"]] = known[field] if field else each.get("value", "from-a-secret")
        return names

    def config(self):
        """worker.yaml where the container's command names it, with the paths of this machine."""
        text = self.outside(self.container["command"][3]).read_text()
        for path in re.findall(r'"(/[^"]+)"', text):
            assert self.covers(path), f"no volume is mounted at {path}"
        moved = self.folder / "worker.yaml"
        moved.write_text(re.sub(r'"(/[^"]+)"', lambda match: json.dumps(str(self.outside(match[1]))), text))
        return moved

    def worker(self, *command):
        return run(WORKER, *command, "--config", self.config(), env=self.environment()).stdout

    def check(self):
        """`check` also tries to listen; a pod has all ports, and here the port may be another test's."""
        config = self.config()
        with socket.socket() as held:  # while it is open, nobody else is given its port
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("", 0))
            port = held.getsockname()[1]
            text = re.sub(r'(listen: ".*):\d+"', rf'\1:{port}"', config.read_text())
            config.write_text(text)
            under = [NEWEST] if "oidc" in text else []
            return run(*under, WORKER, "check", "--config", config, env=self.environment()).stdout
