// Sends one job and reads its result, with nothing but franz-go and msgpack: what a client in another language does.
// usage: job SERVERS JOBS_TOPIC RESULTS_TOPIC
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/vmihailenco/msgpack/v5"
)

const answerBytesMax = 64 * 1024 // far more than the answer to this job has

type result struct {
	Status string `msgpack:"status"`
	Error  struct {
		Code string `msgpack:"code"`
	} `msgpack:"error"`
	Outputs []struct {
		Datatype string `msgpack:"datatype"`
		Shape    []int  `msgpack:"shape"`
		Data     []byte `msgpack:"data"`
	} `msgpack:"outputs"`
}

// Elements are little-endian, whatever this machine is.
func bytesOf(numbers ...float32) []byte {
	var bytes []byte
	for _, number := range numbers {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(number))
	}
	return bytes
}

func numbersOf(bytes []byte) (numbers []float32) {
	for i := 0; i+4 <= len(bytes); i += 4 {
		numbers = append(numbers, math.Float32frombits(binary.LittleEndian.Uint32(bytes[i:])))
	}
	return numbers
}

func job(id string) map[string]any {
	buffer := func(data []byte) map[string]any {
		return map[string]any{"bytes": len(data), "datatype": "FP32", "shape": []int{len(data) / 4}, "data": data}
	}
	return map[string]any{
		"v": 1, "id": id,
		"buffers": map[string]any{"x": buffer(bytesOf(1, 2, 3)), "y": buffer(bytesOf(10, 20, 30))},
		"steps": []any{map[string]any{
			"program": "saxpy", "elements": 3,
			"args": []any{map[string]any{"f32": 2.5}, "x", "y", map[string]any{"u32": 3}},
		}},
		"outputs": []any{map[string]any{"buffer": "y"}},
	}
}

// Anybody may use the job's id: its answer names the place where the brokers put the job.
func isAnswer(record, job *kgo.Record) bool {
	place := fmt.Sprintf("%s/%d/%d", job.Topic, job.Partition, job.Offset)
	for _, header := range record.Headers {
		if header.Key == "gpu-worker-source" {
			return string(header.Value) == place
		}
	}
	return false
}

// Anybody may have written it: what does not fit the job is no answer.
func read(message []byte) (answer result, err error) {
	if len(message) > answerBytesMax {
		return answer, fmt.Errorf("the answer has %d bytes", len(message))
	}
	if err := msgpack.Unmarshal(message, &answer); err != nil || answer.Status != "ok" {
		return answer, fmt.Errorf("%s %s %w", answer.Status, answer.Error.Code, err)
	}
	if len(answer.Outputs) == 1 {
		y := answer.Outputs[0]
		if y.Datatype == "FP32" && len(y.Shape) == 1 && y.Shape[0] == 3 && len(y.Data) == 12 {
			return answer, nil
		}
	}
	return answer, errors.New("the answer does not fit the job")
}

func main() {
	servers, jobs, results := strings.Split(os.Args[1], ","), os.Args[2], os.Args[3]
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.ConsumeTopics(results))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()
	message, err := msgpack.Marshal(job(fmt.Sprintf("from-go-%d", os.Getpid())))
	// A Key keeps the jobs of a key in one partition, those of an empty one too; nil is none.
	sent := &kgo.Record{Topic: jobs, Value: message}
	if err == nil {
		err = client.ProduceSync(ctx, sent).FirstErr() // sets partition and offset
	}
	if err != nil {
		log.Fatal(err)
	}
	for {
		for _, record := range client.PollFetches(ctx).Records() {
			if !isAnswer(record, sent) {
				continue
			}
			answer, err := read(record.Value)
			if err != nil {
				log.Fatal(err)
			}
			output := answer.Outputs[0]
			fmt.Println(answer.Status, answer.Error.Code, output.Datatype, output.Shape, numbersOf(output.Data))
			return
		}
	}
}
