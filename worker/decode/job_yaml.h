/**
 * A job as a person writes it: the message's own keys in YAML. Wherever `data` stands (a buffer,
 * its init, its writes) it is one of
 *
 *   {f32: [1, 2.5]}   also f64, i32, i64, u32, u64 and u8; little-endian
 *   {hex: "00ff"}
 *   {file: x.bin}     relative to the folder of the YAML file
 *
 * An argument `{each: {f32: [1, 2]}}` has one number for each instance of an array job; {hex: ..}
 * or {file: ..} may stand for the list. `v` is filled in, and a buffer's `bytes` where its data
 * says them. Whether the job makes sense is for decode_job() to say: this only translates. Threads:
 * one at a time.
 */
#ifndef DECODE_JOB_YAML_H
#define DECODE_JOB_YAML_H

#include "base/yaml.h"

/**
 * `*bytes` is a new block that the caller frees. ERR_CONFIG where something was added to
 * `problems`, ERR_NO_MEMORY.
 */
MUST_CHECK enum err job_yaml_encode(const struct yaml_document *document, const char *folder,
    struct problems *problems, uint8_t **bytes, size_t *size, struct error *err);

#endif
