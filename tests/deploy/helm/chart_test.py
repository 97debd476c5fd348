"""The chart renders what a cluster takes and a worker loads, and computes the rest from the worker's configuration.
usage: chart_test.py TOOLS BUILD"""

import base64
import functools
import http.server
import json
import pathlib
import re
import shlex
import shutil
import tempfile
import threading
import unittest

import chart
from chart import BUILD, CHART, HERE, OBSERVABILITY, WORKER, find, helm, kinds, render, run, yaml

MIB = 1 << 20
ROOT = HERE.parents[2]
UNITS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000,
         "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30, "TiB": 1 << 40}
SAXPY = BUILD / "share/gpu-worker/programs/saxpy"
# What a cluster has before the chart is installed.
OBJECTS = {
    "kafka-user": {"username": "worker", "password": "s3\"cr\\et"},
    "kafka-tls": {"ca.crt": "a CA", "tls.crt": "a certificate", "tls.key": "a key"},
    "metrics-token": {"token": "a-secret"},
    "my-saxpy-files": {path.name: path.read_bytes() for path in SAXPY.iterdir()},
}


def number(text):
    digits, unit = re.fullmatch(r"(\d+)([A-Za-z]*)", str(text)).groups()
    return int(digits) * UNITS[unit]


def executors(values, settings):
    if isinstance(settings["devices"], list):
        return len(settings["devices"])
    return settings["cpu_driver"]["devices"] if settings["driver"] == "cpu" else values["gpu"]["count"]


def memory_mib(values, settings):
    """config/README.md, "Memory", in numbers: what one executor may hold, for each of them, and the supervisor."""
    limits, blobs = settings["limits"], settings["blobs"]
    flight, job = number(limits["bytes_in_flight"]), number(limits["job_bytes"])
    responses = len(settings["kafka"]["bootstrap_servers"].split(","))
    one = flight + flight // 4 + responses * flight // 4 + 30 * MIB
    batches = settings["lanes"] * settings["lane_depth"]
    if settings["batch"]["graphs"] == "auto":
        one += batches * 12 * MIB // 10
    slabs = batches * number(settings["lane_slab_bytes"])
    staging = 4 * MIB * settings["prepare"]["threads"]
    one += number(settings["pools"]["pinned_bytes"]) or max(128 * MIB, 2 * slabs + staging + job)
    if blobs["dir"] or blobs["url"]:
        one += job + number(blobs["bytes_max"])
    one += number(settings["cpu_driver"]["memory_bytes"]) if settings["driver"] == "cpu" else 1024 * MIB
    return 64 + -(-one * executors(values, settings) // MIB)


class TokenEndpoint(http.server.BaseHTTPRequestHandler):
    """An OIDC provider that refuses each request, and keeps (user and password, body) of it."""
    asked = []

    def do_POST(self):
        scheme, _, secret = self.headers["Authorization"].partition(" ")
        assert scheme == "Basic"
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.asked.append((base64.b64decode(secret).decode(), body))
        self.send_error(401)

    def log_message(self, *_):
        pass


class Rendered:
    """One set of values: what is rendered, and what the worker itself makes of the configuration in it."""

    def __init__(self, path, folder):
        self.values = yaml.load((CHART / "values.yaml").read_text(), yaml.CSafeLoader)
        for key, value in yaml.load(path.read_text(), yaml.CSafeLoader).items():
            if isinstance(value, dict) and key != "config":
                for inner, given in value.items():
                    self.values[key][inner] = {**self.values[key][inner], **given} if isinstance(given, dict) else given
            else:
                self.values[key] = value
        self.documents = render(path)
        self.workload = find(self.documents, self.values["kind"])
        self.spec = self.workload["spec"]["template"]["spec"]
        self.container = self.spec["containers"][0]
        config = config_map(self.documents)
        self.pod = chart.Pod(self.spec, {**OBJECTS, config["metadata"]["name"]: config["data"]}, folder)
        self.settings = yaml.load(self.pod.worker("config", "show"), yaml.CSafeLoader)


def config_map(documents):
    """The one with the worker's configuration."""
    return find([each for each in documents if "worker.yaml" in each.get("data", {})], "ConfigMap")


def of_each_set(test):
    """Runs the test with each set of values."""
    @functools.wraps(test)
    def run_tests(self):
        for name, rendered in self.sets.items():
            with self.subTest(values=name):
                test(self, rendered)
    return run_tests


class ValueSets(unittest.TestCase):
    """Each file of values/, one after the other."""

    @classmethod
    def setUpClass(cls):
        cls.crds = dict(chart.crd_schemas())
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.sets = {path.stem: Rendered(path, cls.folder / path.stem) for path in sorted((HERE / "values").iterdir())}

    @of_each_set
    def test_a_cluster_takes_every_document_and_knows_every_key(self, rendered):
        for document in rendered.documents:
            chart.validate(document, self.crds)

    def test_an_unknown_key_would_be_found_in_every_kind_of_document(self):
        found = {}
        for rendered in self.sets.values():
            found.update({(document["kind"], document["apiVersion"]): document for document in rendered.documents})
        self.assertLessEqual({"Deployment", "StatefulSet", "Job", "Pod", *chart.CRDS}, {kind for kind, _ in found})
        for key, document in found.items():
            part = next(document[name] for name in ("spec", "metadata") if name in document)
            part["notAKey"] = 1
            with self.subTest(kind=key), self.assertRaises(chart.jsonschema.ValidationError):
                chart.validate(document, self.crds)
            del part["notAKey"]

    def test_helm_finds_nothing_to_say(self):
        for path in (HERE / "values").iterdir():
            with self.subTest(values=path.stem):
                printed = helm("lint", "--strict", "--quiet", CHART, "--values", path).stdout
                self.assertNotIn("[WARNING]", printed)

    @of_each_set
    def test_the_worker_loads_the_config_map(self, rendered):
        self.assertIn("ok: ", rendered.pod.check())

    @of_each_set
    def test_the_grace_period_is_the_drain_and_ten_seconds(self, rendered):
        drain = number(rendered.settings["drain_timeout_ms"])
        self.assertEqual(rendered.spec["terminationGracePeriodSeconds"], -(-drain // 1000) + 10)

    @of_each_set
    def test_the_port_is_that_of_the_configuration_and_the_probes_ask_there(self, rendered):
        listen = rendered.settings["http"]["listen"]
        ports = [{"name": "http", "containerPort": int(listen.rpartition(":")[2]), "protocol": "TCP"}] if listen else []
        self.assertEqual(rendered.container.get("ports", []), ports)
        probes = {name: rendered.container[name]["httpGet"] for name in rendered.container if name.endswith("Probe")}
        self.assertEqual(probes, rendered.values["probes"]["enabled"] and {
            "startupProbe": {"path": "/livez", "port": "http"},
            "livenessProbe": {"path": "/livez", "port": "http"},
            "readinessProbe": {"path": "/readyz", "port": "http"}} or {})

    @of_each_set
    def test_memory_is_what_the_configuration_can_make_the_worker_hold(self, rendered):
        resources = rendered.container["resources"]
        self.assertEqual(resources["limits"]["memory"], f"{memory_mib(rendered.values, rendered.settings)}Mi")
        self.assertEqual(resources["requests"]["memory"], resources["limits"]["memory"])

    @of_each_set
    def test_gpus_stand_in_the_limits_alone_and_by_their_name(self, rendered):
        gpu, resources = rendered.values["gpu"], rendered.container["resources"]
        others = {key: value for key, value in resources["limits"].items() if key != "memory"}
        has_plugin = rendered.settings["driver"] == "cuda" and not gpu["dra"]["enabled"]
        self.assertEqual(others, {gpu["resource"]: gpu["count"]} if has_plugin else {})
        self.assertEqual(set(resources["requests"]), {"cpu", "memory"})

    @of_each_set
    def test_no_scaler_starts_more_executors_than_there_are_partitions(self, rendered):
        partitions = (rendered.values["topics"]["partitions"] or 1) * len(rendered.settings["topics"]["jobs"])
        each = executors(rendered.values, rendered.settings)
        most = [document["spec"].get("maxReplicaCount") or document["spec"].get("maxReplicas")
                for document in rendered.documents if document["kind"] in ("ScaledObject", "HorizontalPodAutoscaler")]
        pods = most[0] if most else rendered.workload["spec"]["replicas"]
        self.assertLessEqual(pods * each, max(partitions, each))
        self.assertEqual("replicas" in rendered.workload["spec"], not most)

    @of_each_set
    def test_every_pod_is_confined(self, rendered):
        specs = [document["spec"] for document in rendered.documents if document["kind"] == "Pod"]
        specs += [document["spec"]["template"]["spec"] for document in rendered.documents
                  if document["kind"] in ("Deployment", "StatefulSet", "Job")]
        for spec in specs:
            self.assertIs(spec["automountServiceAccountToken"], False)
            self.assertIs(spec["securityContext"]["runAsNonRoot"], True)
            self.assertGreater(spec["securityContext"]["runAsUser"], 0)
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            for container in spec["containers"]:
                self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False,
                                 "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})

    def test_a_changed_configuration_changes_the_pods(self):
        sums = [rendered.workload["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
                for rendered in self.sets.values()]
        configs = [config_map(rendered.documents)["data"]["worker.yaml"] for rendered in self.sets.values()]
        self.assertEqual(len(set(sums)), len(set(configs)))

    @of_each_set
    def test_workers_alone_are_selected(self, rendered):
        """A disruption budget or a PodMonitor that found the Job of the topics or the test pod would count them."""
        selector = rendered.workload["spec"]["selector"]["matchLabels"]
        self.assertLessEqual(selector.items(), rendered.workload["spec"]["template"]["metadata"]["labels"].items())
        for document in rendered.documents:
            labels = {"Pod": document["metadata"].get("labels", {}),
                      "Job": document.get("spec", {}).get("template", {}).get("metadata", {}).get("labels", {})}
            self.assertFalse(selector.items() <= labels.get(document["kind"], {}).items())

    # ---- each set for itself ----

    def test_a_deployment_makes_room_before_it_starts_a_pod(self):
        self.assertEqual(self.sets["minimal"].workload["spec"]["strategy"],
                         {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}})
        self.assertEqual(kinds(self.sets["minimal"].documents), ["ConfigMap", "Deployment", "Pod", "ServiceAccount"])

    def test_a_stateful_set_names_its_members_and_keeps_their_state(self):
        rendered = self.sets["statefulset"]
        self.assertEqual(rendered.settings["kafka"]["instance_id"], "sweep-gpu-worker-0")
        self.assertEqual(rendered.workload["spec"]["serviceName"], find(rendered.documents, "Service")["metadata"]["name"])
        claim = rendered.workload["spec"]["volumeClaimTemplates"][0]
        self.assertEqual((claim["metadata"]["name"], claim["spec"]["storageClassName"]), ("state", "fast"))
        self.assertNotIn("state", [volume["name"] for volume in rendered.spec["volumes"]])
        self.assertEqual(self.sets["minimal"].settings["kafka"]["instance_id"], "")

    def test_keda_wakes_a_group_that_never_committed(self):
        rendered = self.sets["keda"]
        spec = find(rendered.documents, "ScaledObject")["spec"]
        self.assertEqual((spec["minReplicaCount"], spec["maxReplicaCount"]), (0, 2 * 7 // 2))
        metadata = [trigger["metadata"] for trigger in spec["triggers"]]
        self.assertEqual([each["topic"] for each in metadata], rendered.settings["topics"]["jobs"])
        for each in metadata:
            self.assertEqual(each["consumerGroup"], rendered.settings["kafka"]["group"])
            self.assertEqual(each["offsetResetPolicy"], "latest")
            self.assertEqual(each["lagThreshold"], str(90 * 5 // 2))
        given = find(self.sets["secured"].documents, "ScaledObject")["spec"]["triggers"][0]["metadata"]
        self.assertEqual(given["lagThreshold"], "500")
        earliest = find(self.sets["secured"].documents, "ScaledObject")["spec"]["triggers"][0]["metadata"]
        self.assertEqual(earliest["offsetResetPolicy"], "earliest")

    def test_secrets_are_files_and_stand_in_no_document(self):
        rendered = self.sets["secured"]
        self.assertNotIn("s3", str(rendered.documents))
        for side in ("consumer", "producer"):
            given = rendered.settings["kafka"][side]
            self.assertEqual((given["security.protocol"], given["sasl.mechanism"]), ("sasl_ssl", "SCRAM-SHA-512"))
            self.assertEqual(given["sasl.username"], "worker")
            for key in ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location"):
                self.assertTrue(pathlib.Path(given[key]).is_file(), given[key])
        trigger = find(rendered.documents, "ScaledObject")["spec"]["triggers"][0]
        self.assertEqual((trigger["metadata"]["sasl"], trigger["metadata"]["tls"]), ("scram_sha512", "enable"))
        references = find(rendered.documents, "TriggerAuthentication")["spec"]["secretTargetRef"]
        self.assertEqual({each["parameter"] for each in references}, {"username", "password", "ca", "cert", "key"})
        for each in references:
            self.assertIn(each["key"], OBJECTS[each["name"]])

    def test_oidc_asks_for_tokens_in_the_worker_in_keda_and_in_the_job_of_the_topics(self):
        rendered = self.sets["oidc"]
        written = yaml.load(config_map(rendered.documents)["data"]["worker.yaml"], yaml.CSafeLoader)
        for side in ("consumer", "producer"):
            self.assertEqual(written["kafka"][side], {
                "security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": "https://login.example/token", "sasl.oauthbearer.scope": "kafka jobs",
                "sasl.oauthbearer.client.id": {"file": "/etc/gpu-worker/sasl/username"},
                "sasl.oauthbearer.client.secret": {"file": "/etc/gpu-worker/sasl/password"}})
        trigger = find(rendered.documents, "ScaledObject")["spec"]["triggers"][0]
        self.assertEqual(trigger["metadata"]["sasl"], "oauthbearer")
        authentication = find(rendered.documents, "TriggerAuthentication")["spec"]
        told = {each["parameter"]: config_map(rendered.documents)["data"][each["key"]]
                for each in authentication["configMapTargetRef"]}
        self.assertEqual(told, {"oauthTokenEndpointUri": "https://login.example/token", "scopes": "kafka,jobs"})
        self.assertEqual({each["parameter"] for each in authentication["secretTargetRef"]}, {"username", "password"})
        egress = find(rendered.documents, "NetworkPolicy")["spec"]["egress"]
        self.assertEqual([(rule["to"], rule["ports"][0]["port"]) for rule in egress][2:], [([{"ipBlock": {"cidr": "10.2.0.0/16"}}], 443)])
        properties, environment = self.client_properties(rendered)
        self.assertEqual(properties["sasl.oauthbearer.token.endpoint.url"], "https://login.example/token")
        self.assertTrue(properties["sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler"))
        self.assertIn('clientId="worker" clientSecret="', properties["sasl.jaas.config"])
        self.assertIn('scope="kafka jobs";', properties["sasl.jaas.config"])
        self.assertEqual(environment["KAFKA_OPTS"], "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://login.example/token")

    def test_the_first_request_for_a_token_carries_the_secret(self):
        """With a librdkafka that can: Debian 12's is refused, with what to do."""
        rendered = self.sets["oidc"]
        config = rendered.pod.config()
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), TokenEndpoint) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            config.write_text(config.read_text().replace("https://login.example", f"http://127.0.0.1:{server.server_port}")
                              .replace("sasl_ssl", "sasl_plaintext").replace("kafka-0:9093", "127.0.0.1:1")
                              .replace("0.0.0.0:9400", ""))
            checked = run(chart.NEWEST, WORKER, "check", "--connect", "--config", config, check=False,
                          env=rendered.pod.environment())
            server.shutdown()
        self.assertEqual(checked.returncode, 5, checked.stderr)
        self.assertIn("Failed to acquire SASL OAUTHBEARER token", checked.stderr)
        secret = ":".join(OBJECTS["kafka-user"].values())
        self.assertEqual(TokenEndpoint.asked[0], (secret, "grant_type=client_credentials&scope=kafka jobs"))
        refused = run(WORKER, "check", "--config", config, check=False, env=rendered.pod.environment())
        if refused.returncode != 0:  # as with Debian 12's
            self.assertIn("not supported in this build", refused.stderr)
            self.assertIn("use a librdkafka that is built with it", refused.stderr)

    def test_other_containers_a_wait_between_pods_and_an_annotated_account_are_there(self):
        rendered = self.sets["oidc"]
        self.assertEqual([each["name"] for each in rendered.spec["initContainers"]], ["wait", "proxy"])
        self.assertEqual([each["name"] for each in rendered.spec["containers"]], ["worker", "logs"])
        test_pod = find(rendered.documents, "Pod", "-check")["spec"]
        self.assertEqual([each["name"] for each in test_pod["initContainers"]], ["wait", "proxy"])
        self.assertEqual(rendered.workload["spec"]["minReadySeconds"], 15)
        self.assertEqual(find(rendered.documents, "ServiceAccount")["metadata"]["annotations"],
                         {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/worker"})
        self.assertNotIn("annotations", find(self.sets["minimal"].documents, "ServiceAccount")["metadata"])

    def test_a_fenced_pod_reaches_brokers_blob_store_collector_and_dns_alone(self):
        rendered = self.sets["fenced"]
        policy = find(rendered.documents, "NetworkPolicy")["spec"]
        self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
        self.assertEqual([sorted({port["port"] for port in rule["ports"]}) for rule in policy["egress"]],
                         [[53], [9092, 9094, 9095], [9000], [4318]])
        self.assertTrue(all(rule["to"] for rule in policy["egress"]))
        self.assertEqual([port["port"] for port in policy["ingress"][0]["ports"]], [9500])
        self.assertEqual(find(rendered.documents, "PodDisruptionBudget")["spec"]["maxUnavailable"], "25%")

    def test_metrics_are_read_with_the_token_that_the_worker_asks_for(self):
        rendered = self.sets["fenced"]
        endpoint = find(rendered.documents, "PodMonitor")["spec"]["podMetricsEndpoints"][0]
        self.assertEqual(endpoint["path"], "/metrics")
        told = endpoint["authorization"]["credentials"]
        read = pathlib.Path(rendered.settings["http"]["token_file"]).read_text()
        self.assertEqual(read, OBJECTS[told["name"]][told["key"]])

    def test_alerts_and_dashboard_are_those_of_the_folder_and_what_reads_them_finds_them(self):
        documents = self.sets["fenced"].documents
        rule = find(documents, "PrometheusRule")
        self.assertEqual(rule["metadata"]["labels"]["release"], "prometheus")
        shipped = (OBSERVABILITY / "alerts.yaml").read_text()
        groups = yaml.safe_load(shipped.replace("https://gpu-worker.example/deploy/README.md", "https://git.example/runbook.md"))["groups"]
        self.assertEqual(rule["spec"]["groups"], groups[:2])
        dashboard = find(documents, "ConfigMap", "-dashboard")
        self.assertEqual(dashboard["metadata"]["labels"]["grafana_dashboard"], "1")
        self.assertEqual(json.loads(dashboard["data"]["gpu-worker.json"]),
                         json.loads((OBSERVABILITY / "dashboard.json").read_text()))
        self.assertNotIn("PrometheusRule", kinds(self.sets["minimal"].documents))

    def test_the_alert_of_a_fleet_without_workers_names_this_one(self):
        def expression(values):
            last = find(self.sets[values].documents, "PrometheusRule")["spec"]["groups"][-1]
            self.assertEqual(len(last["rules"]), 1)
            return last["rules"][0]["expr"]
        self.assertEqual(expression("keda"), 'keda_scaler_active{scaledObject="sweep-gpu-worker"} == 1 unless on () '
                                             'gpu_worker_executor_ready{job="jobs/sweep-gpu-worker"} == 1')
        group = self.sets["numbers"].settings["kafka"]["group"]
        self.assertEqual(expression("numbers").count(f"consumergroup={json.dumps(group, ensure_ascii=False)}"), 2)
        self.assertIn("absent(", expression("fenced"))

    def test_a_claim_of_dynamic_allocation_takes_the_place_of_the_resource(self):
        rendered = self.sets["dra"]
        template = find(rendered.documents, "ResourceClaimTemplate")
        request = template["spec"]["spec"]["devices"]["requests"][0]
        self.assertEqual(request["exactly"]["count"], 2)
        self.assertEqual(rendered.spec["resourceClaims"], [
            {"name": "gpu", "resourceClaimTemplateName": template["metadata"]["name"]}])
        self.assertEqual(rendered.container["resources"]["claims"], [{"name": "gpu"}])

    def test_programs_come_from_config_maps(self):
        rendered = self.sets["programs"]
        listed = run(WORKER, "programs", "--config", rendered.pod.config(), env=rendered.pod.environment()).stdout
        self.assertIn("saxpy", listed)
        self.assertNotIn("bfs_csr", listed)

    def test_numbers_and_texts_reach_the_worker_as_they_are(self):
        settings = self.sets["numbers"].settings
        self.assertEqual(settings["kafka"]["group"], "a<b> & 'c' \"d\" ü")
        self.assertEqual(number(settings["limits"]["message_bytes"]), 10_000_000)
        self.assertEqual(number(settings["limits"]["bytes_in_flight"]), 123_456_789_012)
        self.assertEqual(number(settings["drain_timeout_ms"]), 0)
        self.assertEqual(settings["kafka"]["consumer"]["fetch.max.bytes"], "50000000")

    def test_the_topics_are_those_of_the_configuration(self):
        rendered = self.sets["topics"]
        job = find(rendered.documents, "Job")
        script = job["spec"]["template"]["spec"]["containers"][0]["command"][2]
        topics = rendered.settings["topics"]
        wanted = [*topics["jobs"], topics["results"], topics["dead_letters"], topics["telemetry"], *topics["reply_to"],
                  topics["control"], topics["progress"]]
        self.assertEqual(re.findall(r"^create '(.*)'$", script, re.MULTILINE), wanted)
        self.assertIn("--partitions 12 --replication-factor 2", script)

    def client_properties(self, rendered):
        """What the Job of the topics gives Kafka's tools: the file of properties, and the environment."""
        spec = find(rendered.documents, "Job")["spec"]["template"]["spec"]
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        pod = chart.Pod(spec, OBJECTS, folder)
        tool = folder / "kafka-topics.sh"
        tool.write_text(f'#!/bin/sh\necho "$@" >>{folder}/asked\n')
        tool.chmod(0o755)
        script = pod.container["command"][2]
        for mount in pod.mounts:
            script = script.replace(f"{mount}/", f"{pod.outside(mount)}/")
        run("sh", "-euc", script.replace("/opt/kafka/bin/", f"{folder}/"))
        self.assertEqual(len((folder / "asked").read_text().splitlines()), 4)
        properties = dict(line.split("=", 1) for line in pod.outside("/tmp/client.properties").read_text().splitlines())
        self.keystore = pod.outside("/tmp/keystore.pem")
        return properties, pod.environment()

    def test_the_job_of_the_topics_speaks_to_the_brokers_as_the_worker_does(self):
        properties, _ = self.client_properties(self.sets["secured"])
        self.assertEqual((properties["security.protocol"], properties["sasl.mechanism"]), ("SASL_SSL", "SCRAM-SHA-512"))
        # A file of properties takes one layer of backslashes, and the text in JAAS's quotation marks the other.
        text = re.search(r'password="(.*)";$', re.sub(r"\\(.)", r"\1", properties["sasl.jaas.config"]))[1]
        self.assertEqual(re.sub(r"\\(.)", r"\1", text), OBJECTS["kafka-user"]["password"])
        self.assertEqual(pathlib.Path(properties["ssl.keystore.location"]).read_text(), "a keya certificate")

    @of_each_set
    def test_the_test_pod_checks_what_the_pods_load(self, rendered):
        spec = find(rendered.documents, "Pod", "-check")["spec"]
        command = spec["containers"][0]["command"]
        self.assertEqual(command[:2], ["gpu-worker", "check"])
        self.assertEqual(command[2:4], rendered.container["command"][2:4])
        config = config_map(rendered.documents)
        with tempfile.TemporaryDirectory() as folder:
            pod = chart.Pod(spec, {**OBJECTS, config["metadata"]["name"]: config["data"]}, pathlib.Path(folder))
            self.assertIn("ok: ", pod.check())


class Chart(unittest.TestCase):
    def test_what_the_chart_takes_from_the_worker_is_what_this_worker_prints(self):
        done = run(CHART.parent / "generate", WORKER, "--check", check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_a_changed_worker_makes_the_chart_stale(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "helm"
            shutil.copytree(CHART.parent, copy)
            shutil.copytree(OBSERVABILITY, pathlib.Path(folder) / "observability")
            alerts = pathlib.Path(folder) / "observability/alerts.yaml"
            alerts.write_text(alerts.read_text().replace("900 *", "300 *"))
            schema = copy / "gpu-worker/values.schema.json"
            schema.write_text(schema.read_text().replace('"lane_depth"', '"lane_deepness"'))
            done = run(copy / "generate", WORKER, "--check", check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("values.schema.json is stale", done.stdout)
            self.assertIn("files/alerts.yaml is stale", done.stdout)
            run(copy / "generate", WORKER)
            self.assertEqual(schema.read_text(), (CHART / "values.schema.json").read_text())

    def test_the_pages_install_the_image_that_they_push(self):
        for page in (ROOT / "README.md", CHART / "README.md"):
            text = page.read_text().replace("\\\n", "")
            built = re.search(r"^docker build -f deploy/container/Dockerfile -t (\S+) \.$", text, re.MULTILINE)[1]
            self.assertEqual(re.search(r"^docker push (\S+)$", text, re.MULTILINE)[1], built)
            name, *options = shlex.split(re.search(r"^helm install (.*)$", text, re.MULTILINE)[1])
            printed = helm("template", name, *options, cwd=ROOT).stdout
            container = find(list(yaml.safe_load_all(printed)), "Deployment")["spec"]["template"]["spec"]["containers"][0]
            self.assertEqual(container["image"], built, page)

    def test_every_value_is_described(self):
        values = yaml.load((CHART / "values.yaml").read_text(), yaml.CSafeLoader)
        table = (CHART / "README.md").read_text()
        for key, value in values.items():
            described = f"`{key}`" in table or all(f"`{key}.{inner}" in table for inner in value)
            self.assertTrue(described, key)

    def test_the_versions_are_the_workers(self):
        about = yaml.load((CHART / "Chart.yaml").read_text(), yaml.CSafeLoader)
        version = re.search(r"\d+\.\d+\.\d+", run(WORKER, "version").stdout)[0]
        self.assertEqual((about["version"], about["appVersion"]), (version, version))


if __name__ == "__main__":
    unittest.main()
