#include "world/job.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "support/jobs.h"
#include "world/store.h"

enum { INSTANCES = 3, FLOATS = 2, YAML_SIZE = 512 };

/* y = 2 x + 1, with the number of the job in x. */
static const char *const texts[JOB_KINDS] = {
    [JOB_SINGLE] = "buffers: {x: {data: {f32: [%zu, 1]}}, y: {data: {f32: [1, 1]}}}\n"
                   "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2}]\n",
    [JOB_ARRAY] = "count: 3\nbuffers: {x: {data: {f32: [%zu, 1]}},\n"
                  "    y: {bytes: 8, each: true, data: {f32: [1, 1, 1, 1, 1, 1]}}}\n"
                  "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2}]\n",
    [JOB_OF_UNKNOWN_PROGRAM] = "buffers: {x: {data: {f32: [%zu, 1]}}, y: {data: {f32: [1, 1]}}}\n"
                               "steps: [{program: nobody_has_it, args: [x, y], elements: 2}]\n",
    [JOB_WITHOUT_TIME] =
        "deadline_ms: 1789000000000\n"
        "buffers: {x: {data: {f32: [%zu, 1]}}, y: {data: {f32: [1, 1]}}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2}]\n",
    [JOB_OF_STATIC] = "buffers: {x: {data: {f32: [%zu, 1]}}, y: {data: {f32: [0, 0]}},\n"
                      "    ones: {static: "
                      "sha256:80b8fd6d60fa85fd14a38b5295cb92abd80dfec5ca406c9f969609a79d36809d,\n"
                      "        data: {f32: [1, 1]}}}\n"
                      "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2},\n"
                      "    {program: saxpy, args: [{f32: 1}, ones, y, {u32: 2}], elements: 2}]\n",
    [JOB_OF_BLOB] = "buffers: {x: {data: {f32: [%zu, 1]}}, y: {data: {f32: [0, 0]}},\n"
                    "    halves: {static: sha256:" STORE_HALVES ", bytes: 8}}\n"
                    "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2},\n"
                    "    {program: saxpy, args: [{f32: 2}, halves, y, {u32: 2}], elements: 2}]\n",
    [JOB_OF_RESIDENT] =
        "buffers: {x: {data: {f32: [%zu, 1]}},\n"
        "    y: {resident: sum, bytes: 8, init: {fill: 0}}}\n"
        "steps: [{program: saxpy, args: [{f32: 1}, x, y, {u32: 2}], elements: 2}]\n",
    [JOB_OF_POISON] = "buffers: {x: {data: {u32: [%zu]}}, y: {data: {u32: [0]}}}\n"
                      "steps: [{program: poison, entry: trap, args: [y], grid: [1]}]\n",
    [JOB_WITH_POISON] = "count: 3\n"
                        "buffers: {x: {data: {u32: [%zu]}},\n"
                        "    y: {bytes: 4, each: true, data: {u32: [1, 0, 1]}}}\n"
                        "steps: [{program: poison, entry: trap, args: [y], grid: [1]}]\n",
    [JOB_OF_LARGE_RESULT] =
        "buffers: {x: {data: {f32: [%zu, 1]}}, y: {bytes: 4096}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2}]\n",
};

/* NULL: it succeeds. */
static const char *const errors[JOB_KINDS] = {[JOB_OF_UNKNOWN_PROGRAM] = "unknown_program",
    [JOB_WITHOUT_TIME] = "deadline_exceeded",
    [JOB_UNDECODABLE] = "bad_message",
    [JOB_OF_POISON] = "worker_crash",
    [JOB_WITH_POISON] = "instances_failed",
    [JOB_OF_LARGE_RESULT] = "publish_refused"};

struct slice job_encode(enum job_kind kind, size_t number) {
    char yaml[YAML_SIZE];
    if (kind == JOB_UNDECODABLE) return slice_of_text(strdup("no msgpack"));
    int used = snprintf(yaml, sizeof yaml, "id: job-%zu\noutputs: [{buffer: y}]\n", number);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(yaml + used, sizeof yaml - (size_t)used, texts[kind], number);
#pragma GCC diagnostic pop
    return test_job_bytes(yaml);
}

struct slice job_encode_cancel(size_t number) {
    char id[32];
    int id_size = snprintf(id, sizeof id, "job-%zu", number);
    msgpack_sbuffer bytes;
    msgpack_packer packer;
    msgpack_sbuffer_init(&bytes);
    msgpack_packer_init(&packer, &bytes, msgpack_sbuffer_write);
    msgpack_pack_map(&packer, 3);
    msgpack_pack_str_with_body(&packer, "v", 1);
    msgpack_pack_int(&packer, 1);
    msgpack_pack_str_with_body(&packer, "id", 2);
    msgpack_pack_str_with_body(&packer, id, (size_t)id_size);
    msgpack_pack_str_with_body(&packer, "action", 6);
    msgpack_pack_str_with_body(&packer, "cancel", 6);
    return slice_of(msgpack_sbuffer_release(&bytes), bytes.size);
}

static const msgpack_object *get(const msgpack_object *map, const char *key) {
    for (uint32_t i = 0; map != NULL && map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size;
         i++) {
        const msgpack_object_kv *pair = &map->via.map.ptr[i];
        if (pair->key.via.str.size == strlen(key) &&
            memcmp(pair->key.via.str.ptr, key, strlen(key)) == 0)
            return &pair->val;
    }
    return NULL;
}

static void copy_text(const msgpack_object *object, char ret[static 64]) {
    ret[0] = 0;
    if (object != NULL && object->type == MSGPACK_OBJECT_STR)
        snprintf(ret, 64, "%.*s", (int)object->via.str.size, object->via.str.ptr);
}

size_t job_number_of(const msgpack_object *result) {
    char id[64];
    size_t number = SIZE_MAX;
    copy_text(get(result, "id"), id);
    (void)!sscanf(id, "job-%zu", &number);
    return number;
}

size_t job_count_told(const msgpack_object *report) {
    const msgpack_object *outcomes = get(report, "outcomes");
    size_t count = 0;
    for (uint32_t i = 0; outcomes != NULL && i < outcomes->via.map.size; i++)
        count += (size_t)outcomes->via.map.ptr[i].val.via.u64;
    return count;
}

static bool has_floats(const msgpack_object *result, size_t count, float *ret) {
    const msgpack_object *outputs = get(result, "outputs");
    if (outputs == NULL || outputs->type != MSGPACK_OBJECT_ARRAY || outputs->via.array.size != 1)
        return false;
    const msgpack_object *data = get(&outputs->via.array.ptr[0], "data");
    bool has_all = data != NULL && data->type == MSGPACK_OBJECT_BIN &&
                   data->via.bin.size == count * sizeof ret[0];
    if (has_all) memcpy(ret, data->via.bin.ptr, count * sizeof ret[0]);
    return has_all;
}

static bool has_numbers(const msgpack_object *result, size_t instances, size_t number) {
    float floats[INSTANCES * FLOATS];
    bool are_right = has_floats(result, instances * FLOATS, floats);
    for (size_t i = 0; i < instances * FLOATS && are_right; i++)
        are_right = floats[i] == (i % FLOATS == 0 ? 2 * (float)number + 1 : 3);
    return are_right;
}

bool job_find_resident(const msgpack_object *result, struct job_resident *ret) {
    float floats[FLOATS];
    const msgpack_object *generation = get(get(result, "residents"), "sum");
    if (generation == NULL || generation->type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
        !has_floats(result, FLOATS, floats))
        return false;
    *ret = (struct job_resident){(size_t)generation->via.u64, (size_t)floats[0]};
    return floats[1] == (float)ret->generation; /* each adds 1 to it */
}

static bool is_right(enum job_kind kind, size_t number, const msgpack_object *result) {
    struct job_resident ignored;
    if (kind == JOB_OF_RESIDENT) return job_find_resident(result, &ignored);
    return has_numbers(result, kind == JOB_ARRAY ? INSTANCES : 1, number);
}

bool job_is_cancelled_by(const msgpack_object *result) {
    char code[64];
    copy_text(get(get(result, "error"), "code"), code);
    return strcmp(code, "cancelled") == 0;
}

bool job_has_failed(const msgpack_object *result) {
    return get(result, "error") != NULL && !job_is_cancelled_by(result);
}

bool job_may_fail_with(enum job_kind kind, const char *code) {
    if (errors[kind] != NULL && strcmp(code, errors[kind]) == 0) return true;
    /* their key may have ended too many executors by then */
    if (kind >= JOB_SENT_BY_CHANCE && strcmp(code, "suspended") == 0) return true;
    /* a failure that may pass takes the resident along, so it is not tried again */
    return kind == JOB_OF_RESIDENT && strcmp(code, "driver_error") == 0;
}

bool job_is_answered_by(enum job_kind kind, size_t number, const msgpack_object *result) {
    char code[64], message[64];
    copy_text(get(get(result, "error"), "code"), code);
    copy_text(get(get(result, "error"), "message"), message);
    bool ret = code[0] != 0 ? job_may_fail_with(kind, code)
                            : errors[kind] == NULL && is_right(kind, number, result);
    if (!ret) fprintf(stderr, "job-%zu, of kind %d: %s: %s\n", number, (int)kind, code, message);
    return ret;
}
