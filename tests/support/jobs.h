/** Jobs for tests, written as YAML and brought through the real encoder and decoder. */
#ifndef TESTS_SUPPORT_JOBS_H
#define TESTS_SUPPORT_JOBS_H

#include "decode/decode.h"
#include "program/program.h"

/** The programs that the build made. */
struct registry *test_registry(void);

/** Msgpack bytes of a job in YAML, to be freed; the test fails where it is no valid YAML. */
struct slice test_job_bytes(const char *yaml);

/** A decoded job that must be valid; ends with job_destroy(). */
struct job *test_job(const char *yaml);

/** Generous limits. */
struct decode_limits test_decode_limits(void);

#endif
