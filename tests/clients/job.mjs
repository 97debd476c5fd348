// Sends one job and reads its result, with nothing but kafkajs and msgpack: what a client in another language does.
// usage: node job.mjs SERVERS JOBS_TOPIC RESULTS_TOPIC
import { decode, encode } from "@msgpack/msgpack";
import { randomUUID } from "node:crypto";
import kafkajs from "kafkajs";

const ANSWER_BYTES_MAX = 64 * 1024; // far more than the answer to this job has
const ANSWER_ITEMS_MAX = 64;
const [servers, jobs, results] = process.argv.slice(2);
const kafka = new kafkajs.Kafka({ brokers: servers.split(","), logLevel: kafkajs.logLevel.ERROR });

// Elements are little-endian, whatever this machine is.
function bytesOf(numbers) {
  const view = new DataView(new ArrayBuffer(4 * numbers.length));
  numbers.forEach((number, i) => view.setFloat32(4 * i, number, true));
  return new Uint8Array(view.buffer);
}

function numbersOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.byteLength / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

const x = { bytes: 12, datatype: "FP32", shape: [3], data: bytesOf([1, 2, 3]) };
const y = { bytes: 12, datatype: "FP32", shape: [3], data: bytesOf([10, 20, 30]) };
const id = `from-javascript-${randomUUID()}`;
const job = {
  v: 1,
  id,
  buffers: { x, y },
  steps: [{ program: "saxpy", args: [{ f32: 2.5 }, "x", "y", { u32: 3 }], elements: 3 }],
  outputs: [{ buffer: "y" }],
};

const consumer = kafka.consumer({ groupId: `javascript-${id}` });
const producer = kafka.producer();
await consumer.connect();
await producer.connect();
await consumer.subscribe({ topics: [results], fromBeginning: true });
// A `key` in the message keeps the jobs of a key in one partition, those of an empty one too.
// Anybody may use the job's id: its answer names the place where the brokers put the job.
const place = producer
  .send({ topic: jobs, messages: [{ value: Buffer.from(encode(job)) }] })
  .then(([{ topicName, partition, baseOffset }]) => `${topicName}/${partition}/${baseOffset}`);
const answer = new Promise((resolve) => {
  consumer.run({
    eachMessage: async ({ message }) => {
      if (message.headers["gpu-worker-source"]?.toString() === (await place)) resolve(message.value);
    },
  });
});

// Anybody may have written it: what does not fit the job is no answer.
function read(message) {
  if (message.length > ANSWER_BYTES_MAX) throw new Error(`the answer has ${message.length} bytes`);
  const result = decode(message, { maxArrayLength: ANSWER_ITEMS_MAX, maxMapLength: ANSWER_ITEMS_MAX });
  if (result.status !== "ok") throw new Error(`${result.status} ${result.error?.code}`);
  const [output, ...others] = result.outputs;
  const isOurs = output?.datatype === "FP32" && `${output.shape}` === "3" && output.data instanceof Uint8Array;
  if (!isOurs || output.data.length !== 12 || others.length > 0) throw new Error("the answer does not fit the job");
  return result;
}

const result = read(await answer);
const [output] = result.outputs;
console.log(result.status, result.error?.code ?? "", output.datatype, output.shape, numbersOf(output.data));
await Promise.all([consumer.disconnect(), producer.disconnect()]);
