"""Values that cannot work are refused, with a line that names them and says what to do. usage: refusals_test.py TOOLS BUILD"""

import pathlib
import tempfile
import unittest

from chart import CHART, helm

BASE = """
image: {repository: registry.example/gpu-worker}
config:
  kafka: {bootstrap_servers: kafka:9092}
"""
# (what is wrong, as YAML over BASE; what helm says)
WRONG = [
    ("config: {lane: 4}", "at '/config': additional properties 'lane' not allowed"),
    ("config: {limits: {job_byte: 1GiB}}", "at '/config/limits': additional properties 'job_byte' not allowed"),
    ("config: {lanes: 100}", "at '/config/lanes': maximum: got 100, want 64"),
    ("config: {drain_timeout_ms: 25 s}", "at '/config/drain_timeout_ms': '25 s' does not match pattern"),
    ("config: {delivery: exactly-once}", "value must be one of 'at_least_once', 'exactly_once'"),
    ("config: {kafka: {consumer: {group.id: mine}}}", "invalid propertyName 'group.id'"),
    ("replica: 2", "additional properties 'replica' not allowed"),
    ("kind: DaemonSet", "at '/kind': value must be one of 'Deployment', 'StatefulSet'"),
    ("resources: {requests: {nvidia.com/gpu: 1}}", "at '/resources': additional properties 'requests' not allowed"),
    ("resources: {memory: 4G}", "at '/resources/memory': '4G' does not match pattern"),
    ("securityContext: {runAsUser: 0}", "at '/securityContext/runAsUser': minimum: got 0, want 1"),
    ("gpu: {count: 0}", "at '/gpu/count': minimum: got 0, want 1"),
    ("config: {kafka: null}", "config.kafka.bootstrap_servers is missing: name the brokers"),
    ("config: {broker: embedded}", "config.broker is embedded, which cannot be reached from outside the pod: use kafka"),
    ("config: {drain_timeout_ms: '${DRAIN}'}",
     "config.drain_timeout_ms is '${DRAIN}': the chart computes from it, so write a number there, and no variable"),
    ("config: {kafka: {consumer: {sasl.password: hunter2}}}",
     "config.kafka.consumer has sasl.password in plain text, and a ConfigMap is no place for it"),
    ("config: {kafka: {producer: {sasl.password: '${P:-hunter2}'}}}",
     "config.kafka.producer has sasl.password in plain text, and a ConfigMap is no place for it"),
    ("config: {kafka: {producer: {sasl.password: 'hunter2${P}'}}}", "config.kafka.producer has sasl.password in plain text"),
    ("config: {kafka: {producer: {sasl.password: 20261127}}}", "config.kafka.producer has sasl.password in plain text"),
    ("config: {blobs: {url: 'https://me:hunter2@store/'}}", "config.blobs.url carries a password"),
    ("config: {blobs: {url: 'https://${ME}:hunter2@store/'}}", "config.blobs.url carries a password"),
    ("config: {blobs: {url: 'https://me:${P:-hunter2}@store/'}}", "config.blobs.url carries a password"),
    ("config: {blobs: {url: '${URL:-https://me:hunter2@store/}'}}", "config.blobs.url carries a password"),
    ("config: {blobs: {url: 'https://store/?sig=hunter2'}}", "config.blobs.url has a query"),
    ("config: {tracing: {otlp_url: 'https://traces/?sig=hunter2'}}", "config.tracing.otlp_url has a query"),
    ("env: [{name: SASL_PASSWORD, value: hunter2}]",
     "env.SASL_PASSWORD is in plain text: take it from a Secret, with valueFrom.secretKeyRef"),
    ("{keda: {enabled: true}, hpa: {enabled: true}, topics: {partitions: 4}}",
     "keda.enabled and hpa.enabled are both on: KEDA makes an HPA of its own"),
    ("keda: {enabled: true}", "keda.enabled needs topics.partitions: more pods than partitions would be idle"),
    ("image: {repository: ''}", "image.repository is empty: build the image and push it to a registry of yours:\n"
     "  docker build -f deploy/container/Dockerfile -t REGISTRY/gpu-worker:0.1.0 .\n"
     "  docker push REGISTRY/gpu-worker:0.1.0\n"
     "and add --set image.repository=REGISTRY/gpu-worker"),
    ("{image: {repository: '', tag: mine}}", "docker push REGISTRY/gpu-worker:mine"),
    ("{keda: {enabled: true}, topics: {partitions: 4}}",
     "keda.enabled needs keda.jobsPerSecond, the jobs that a pod finishes in a second"),
    ("{keda: {enabled: true, jobsPerSecond: 0}, topics: {partitions: 4}}", "at '/keda/jobsPerSecond': exclusiveMinimum: got 0"),
    ("{keda: {enabled: true, jobsPerSecond: 4}, topics: {partitions: 1}, gpu: {count: 2}}",
     "a pod has 2 executors, and the job topics have 1 partitions in all, so that an executor would be idle: create 2 partitions "
     "or more, and say so in topics.partitions, or lower gpu.count"),
    ("{topics: {partitions: 1}, config: {driver: cpu, cpu_driver: {devices: 2}}}", "or lower config.cpu_driver.devices"),
    ("{topics: {partitions: 1}, config: {devices: [0, 1]}, gpu: {count: 2}}", "or lower gpu.count and shorten config.devices"),
    ("{hpa: {enabled: true}, topics: {partitions: 4}}", "hpa.metrics is empty: an HPA would scale by the CPU"),
    ("{replicas: 5, topics: {partitions: 4}}",
     "5 pods with 1 executors each are more than the job topics have partitions for: at most 4 pods"),
    ("{replicas: 3, gpu: {count: 2}, topics: {partitions: 4}}", "3 pods with 2 executors each are more than"),
    ("{keda: {enabled: true, jobsPerSecond: 4, maxReplicas: 9}, topics: {partitions: 8}}", "9 pods with 1 executors each are more than"),
    ("{keda: {enabled: true, jobsPerSecond: 4, minReplicas: 9}, topics: {partitions: 8}}",
     "keda.minReplicas is more than the 8 pods that there may be"),
    ("replicas: 2", "2 executors need topics.partitions: say how many partitions each job topic has"),
    ("{keda: {enabled: true}, topics: {partitions: 4}, config: {kafka: {group: '${GROUP}'}}}",
     "config.kafka.group comes from the environment or a file, where keda cannot look: write it out"),
    ("{replicas: 2, topics: {partitions: 4}, config: {kafka: {instance_id: me}}}",
     "config.kafka.instance_id is 'me' in every pod, and of two members of one name the earlier ends: leave it out"),
    ("config: {kafka: {instance_id: '${POD_NAME}'}}", "config.kafka.instance_id names the pods of a Deployment"),
    ("{gpu: {resource: nvidia.com/mig-1g.10gb, count: 2}, topics: {partitions: 4}}",
     "gpu.count is 2, and a process sees one MIG slice alone: use gpu.count: 1 and more pods"),
    ("{gpu: {resource: nvidia.com/gpu.shared, count: 2}, topics: {partitions: 4}}",
     "gpu.count is 2, and several shares may be of one GPU"),
    ("{topics: {partitions: 4}, config: {devices: [0, 1]}}", "config.devices lists 2 GPUs, and gpu.count gives a pod 1"),
    ("config: {http: {listen: '127.0.0.1:9400'}}",
     "probes.enabled needs a port that can be reached from outside of the pod, and config.http.listen is 127.0.0.1:9400: "
     "write 0.0.0.0:9400, or turn probes off"),
    ("config: {http: {listen: ''}}", "probes.enabled needs a port, and config.http.listen is ''"),
    ("{probes: {enabled: false}, podMonitor: {enabled: true}, config: {http: {listen: 'localhost:9400'}}}",
     "podMonitor.enabled needs a port that can be reached from outside of the pod"),
    ("state: {claim: {enabled: true}}", "state.claim.enabled needs kind: StatefulSet"),
    ("{http: {token: {secret: t}}, config: {http: {token_file: /secret}}}",
     "config.http.token_file is set, and so is http.token.secret: remove one of them"),
    ("config: {blobs: {dir: /blobs}}", "config.blobs.dir is /blobs, and no volume is mounted there"),
    ("{programs: {image: mine, volume: {emptyDir: {}}}}", "programs come from one place"),
    ("networkPolicy: {enabled: true}", "networkPolicy.brokers is empty: say where the brokers are"),
    ("{networkPolicy: {enabled: true, brokers: [{podSelector: {}}]}, config: {blobs: {url: 'https://store/'}}}",
     "networkPolicy.blobStore is empty, and config.blobs.url is set"),
    ("{networkPolicy: {enabled: true, brokers: [{podSelector: {}}]}, config: {tracing: {otlp_url: 'https://traces'}}}",
     "networkPolicy.collector is empty, and config.tracing.otlp_url is set"),
    ("{networkPolicy: {enabled: true, brokers: [{podSelector: {}}]}, podMonitor: {enabled: true}}",
     "networkPolicy.scrapers is empty, and podMonitor.enabled is on: say where Prometheus is"),
    ("{networkPolicy: {enabled: true, brokers: [{podSelector: {}}], scrapers: [{podSelector: {}}]}, probes: {enabled: false}, "
     "config: {http: {listen: ''}}}", "networkPolicy.scrapers is set, and config.http.listen is ''"),
    ("{networkPolicy: {enabled: true, brokers: [{podSelector: {}}]}, "
     "kafka: {sasl: {secret: s, mechanism: OAUTHBEARER, tokenEndpoint: 'https://login/token'}}}",
     "networkPolicy.identityProvider is empty, and kafka.sasl.tokenEndpoint is set"),
    ("kafka: {sasl: {secret: s, mechanism: OAUTHBEARER}}", "kafka.sasl.mechanism is OAUTHBEARER, which needs kafka.sasl.tokenEndpoint"),
    ("kafka: {sasl: {secret: s, tokenEndpoint: 'https://login/token'}}", "kafka.sasl.tokenEndpoint is for OAUTHBEARER alone"),
    ("kafka: {sasl: {mechanism: OAUTHBEARER, tokenEndpoint: 'https://login/token'}}", "kafka.sasl.tokenEndpoint is set, and kafka.sasl.secret is not"),
    ("kafka: {sasl: {secret: s, mechanism: OAUTHBEARER, tokenEndpoint: 'https://me:hunter2@login/token'}}",
     "kafka.sasl.tokenEndpoint carries a password"),
    ("config: {kafka: {consumer: {sasl.oauthbearer.token.endpoint.url: 'https://me:hunter2@login/token'}}}",
     "config.kafka.consumer.sasl.oauthbearer.token.endpoint.url carries a password"),
    ("config: {kafka: {consumer: {sasl.oauthbearer.token.endpoint.url: 'https://login/token?sig=hunter2'}}}",
     "config.kafka.consumer.sasl.oauthbearer.token.endpoint.url has a query"),
    ("prometheusRule: {enabled: true}", "prometheusRule.runbookUrl is empty: say where your people read deploy/README.md"),
    ("prometheusRule: {enabled: true, runbookUrl: deploy/README.md}", "at '/prometheusRule/runbookUrl': 'deploy/README.md' does not match"),
    ("{prometheusRule: {enabled: true, runbookUrl: 'https://a/b'}, keda: {enabled: true, jobsPerSecond: 4}, topics: {partitions: 4}}",
     "prometheusRule.noWorker is absent, and KEDA may leave no worker where there are no jobs"),
    ("{prometheusRule: {enabled: true, runbookUrl: 'https://a/b', noWorker: keda}}",
     "prometheusRule.noWorker is keda, which needs keda.enabled and podMonitor.enabled"),
    ("{prometheusRule: {enabled: true, runbookUrl: 'https://a/b', noWorker: kafka-exporter}, config: {kafka: {group: '${GROUP}'}}}",
     "config.kafka.group comes from the environment, where prometheusRule cannot look"),
    ("initContainers: [{image: busybox}]", "at '/initContainers/0': missing property 'name'"),
    ("minReadySeconds: -1", "at '/minReadySeconds': minimum: got -1, want 0"),
    ("serviceAccount: {create: false, annotations: {a: b}}", "serviceAccount.annotations are for an account that the chart creates"),
    ("config: {tracing: {otlp_url: 'https://me:hunter2@traces/'}}", "config.tracing.otlp_url carries a password"),
    ("kafka: {tls: {secret: certificates}}", "kafka.tls.secret is set, and kafka.tls.enabled is not"),
    ("kafka: {tls: {enabled: true, secret: certificates, certKey: tls.crt}}", "kafka.tls.certKey and kafka.tls.keyKey go together"),
    ("{kafka: {sasl: {secret: user}}, config: {kafka: {producer: {sasl.mechanism: PLAIN}}}}",
     "config.kafka.producer sets sasl.mechanism, and so do kafka.tls and kafka.sasl: remove one of them"),
    ("topics: {create: {enabled: true}, partitions: 4}", "topics.create.image is empty: name an image with Kafka's tools"),
    ("topics: {create: {enabled: true, image: kafka}}", "topics.create.enabled needs topics.partitions"),
]
# An older cluster refuses as well.
TOO_OLD = [
    ("gpu: {dra: {enabled: true}}", "1.33.0", "gpu.dra needs Kubernetes 1.34, and this is v1.33.0: use gpu.resource"),
    ("programs: {image: mine}", "1.32.0", "programs.image needs Kubernetes 1.33, and this is v1.32.0: use programs.volume"),
]


class Refusals(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "base.yaml").write_text(BASE)

    def refusal(self, wrong, *options):
        (self.folder / "wrong.yaml").write_text(wrong)
        done = helm("template", "sweep", CHART, "--values", self.folder / "base.yaml",
                    "--values", self.folder / "wrong.yaml", *options, check=False)
        self.assertNotEqual(done.returncode, 0, "nothing was refused")
        return done.stderr

    def test_values_that_cannot_work_are_refused_with_what_to_do(self):
        for wrong, message in WRONG:
            with self.subTest(values=wrong):
                self.assertIn(message, self.refusal(wrong))

    def test_a_cluster_that_is_too_old_is_named(self):
        for wrong, version, message in TOO_OLD:
            with self.subTest(values=wrong):
                self.assertIn(message, self.refusal(wrong, "--kube-version", version))

    def test_names_of_variables_are_no_secrets(self):
        (self.folder / "right.yaml").write_text("""
config:
  kafka: {producer: {sasl.password: '${P}'}, consumer: {sasl.password: {file: /etc/password},
    sasl.oauthbearer.token.endpoint.url: 'https://login/token'}}
  blobs: {url: 'https://${ME}:${P}@store/a@b', cache_dir: /cache}
  tracing: {otlp_url: 'https://me:${P}@${HOST:-traces}/'}
env: [{name: P, valueFrom: {secretKeyRef: {name: s, key: p}}}, {name: ME, value: me}, {name: TOKEN_FILE, value: /run/t}]
""")
        done = helm("template", "sweep", CHART, "--values", self.folder / "base.yaml", "--values", self.folder / "right.yaml",
                    check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_refused_is_right_without_what_is_wrong(self):
        self.assertEqual(helm("template", "sweep", CHART, "--values", self.folder / "base.yaml").returncode, 0)

    def test_every_line_of_a_secret_stays_out_of_the_refusal(self):
        secrets = [wrong for wrong, _ in WRONG if "hunter2" in wrong]
        self.assertGreater(len(secrets), 10)
        for wrong in ["config: {kafka: {producer: {ssl.key.password: hunter2}}}", *secrets]:
            self.assertNotIn("hunter2", self.refusal(wrong))


if __name__ == "__main__":
    unittest.main()
