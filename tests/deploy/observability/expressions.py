"""The expressions of deploy/observability, and what they ask of a worker's /metrics."""

import json
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy/observability"
WORDS = {"by", "without", "on", "ignoring", "group_left", "group_right", "and", "or", "unless", "bool", "offset"}
# What Prometheus says itself, and what others say of the group: kafka-exporter and KEDA's operator.
OTHERS = {"up", "ALERTS", "kafka_consumergroup_lag", "kafka_consumergroup_current_offset", "keda_scaler_active"}
TARGET = {"job", "instance"}  # labels that Prometheus gives to what it scrapes
SELECTOR = re.compile(r"(?<![\w:.])([a-zA-Z_:][\w:]*)(?![\w:])(?!\s*\()(?:\s*{([^}]*)})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
SAMPLE = re.compile(r'(\w+)(?:{((?:\w+="(?:[^"\\]|\\.)*",?)*)})? (\S+)')


def rules():
    return [rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]


def panels():
    return [panel for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"] if panel["type"] != "row"]


def fill_in(text, interval="1m"):
    """An expression of a dashboard as it is asked with everything chosen."""
    return text.replace("$__rate_interval", interval).replace("$job", ".*").replace("$instance", ".*")


def expressions():
    """(where it stands, expression, labels that its text shows)"""
    for rule in rules():
        shown = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
        yield rule["alert"], rule["expr"], shown
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], fill_in(target["expr"]), set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    for variable in json.loads((FOLDER / "dashboard.json").read_text())["templating"]["list"]:
        if variable["type"] == "query":
            (selector, label), = re.findall(r"label_values\((.*), (\w+)\)", variable["definition"])
            yield f"variable {variable['name']}", fill_in(selector), {label}


def selectors(expression):
    """Each (metric, matchers) of the expression; a matcher is (label, operator, value)."""
    for name, matchers in SELECTOR.findall(re.sub(r"\[[^]]*\]", " ", GROUPING.sub(" ", expression))):
        if name not in WORDS:
            yield name, MATCHER.findall(matchers)


def grouped(expression):
    return {label.strip() for labels in GROUPING.findall(expression) for label in labels.split(",") if label.strip()}


def samples(page):
    """(metric, labels) of each line of /metrics."""
    for line in page.splitlines():
        if not line.startswith("#"):
            name, labels, _ = SAMPLE.fullmatch(line).groups()
            yield name, dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))


def fits(matchers, labels):
    tests = {"=": lambda is_, want: is_ == want, "!=": lambda is_, want: is_ != want,
             "=~": lambda is_, want: re.fullmatch(want, is_) is not None,
             "!~": lambda is_, want: re.fullmatch(want, is_) is None}
    return all(tests[operator](labels.get(label, ""), value) for label, operator, value in matchers if label not in TARGET)


def faults(where, expression, shown, page):
    """What the expression asks for and the page does not have."""
    found = list(samples(page))
    for name, matchers in selectors(expression):
        if name in OTHERS:
            continue
        labels = [labels for metric, labels in found if metric == name and fits(matchers, labels)]
        if not labels:
            yield f"{where}: nothing is exported as {name}{{{matchers}}}"
            continue
        known = set.intersection(*map(set, labels)) | TARGET
        asked = {label for label, _, _ in matchers} | grouped(expression)
        yield from (f"{where}: {name} has no label {label}" for label in asked - known)
        if not grouped(expression) and name in expression.partition(" unless ")[0]:  # whose labels the outcome has
            yield from (f"{where}: {name} has no label {label}, which is shown" for label in shown - known)
