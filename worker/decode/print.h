/**
 * Any message (a result, a dead letter's job) as text that a person can read: YAML, with binary
 * data as the numbers that a `datatype` beside it says, else in hex; long lists are cut and their
 * length told in a comment. Text from outside is escaped, so that a terminal stays a terminal.
 * Threads: pure but for `out`.
 */
#ifndef DECODE_PRINT_H
#define DECODE_PRINT_H

#include <stdio.h>

#include "base/slice.h"

/**
 * What is no msgpack is shown in hex, with a comment that says why. Memory while it prints: 24
 * bytes per msgpack value.
 */
void print_message_payload(struct slice payload, FILE *out);

/** Text as YAML takes it: plain where that is safe, else in quotes and escaped. */
void print_text(struct slice text, FILE *out);

#endif
