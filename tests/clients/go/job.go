// Sends one job and reads its result, with nothing but franz-go and msgpack: what a client in another language does.
// usage: job SERVERS JOBS_TOPIC RESULTS_TOPIC
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/vmihailenco/msgpack/v5"
)

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

func isAnswer(record *kgo.Record, id string) bool {
	for _, header := range record.Headers {
		if header.Key == "gpu-worker-job-id" && string(header.Value) == id {
			return true
		}
	}
	return false
}

func main() {
	servers, jobs, results := strings.Split(os.Args[1], ","), os.Args[2], os.Args[3]
	client, err := kgo.NewClient(kgo.SeedBrokers(servers...), kgo.ConsumeTopics(results))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, id := context.Background(), fmt.Sprintf("from-go-%d", os.Getpid())
	message, err := msgpack.Marshal(job(id))
	if err == nil {
		err = client.ProduceSync(ctx, &kgo.Record{Topic: jobs, Value: message}).FirstErr()
	}
	if err != nil {
		log.Fatal(err)
	}
	for {
		for _, record := range client.PollFetches(ctx).Records() {
			if !isAnswer(record, id) {
				continue
			}
			var answer result
			if err := msgpack.Unmarshal(record.Value, &answer); err != nil {
				log.Fatal(err)
			}
			output := answer.Outputs[0]
			fmt.Println(answer.Status, answer.Error.Code, output.Datatype, output.Shape, numbersOf(output.Data))
			return
		}
	}
}
