/**
 * What a collector answers to spans that it took: ExportTraceServiceResponse in the JSON of OTLP.
 * Bytes from outside, of which the first are enough. Private to trace/. Threads: one at a time.
 */
#ifndef TRACE_REPLY_H
#define TRACE_REPLY_H

#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

enum {
    REPLY_BYTES_MAX = 8192,
    REPLY_BODY_BYTES_MAX = 1 << 20, /* what is longer is no reply: it may never end */
    REPLY_MESSAGE_BYTES = 256
};

struct reply {
    char bytes[REPLY_BYTES_MAX];
    size_t size;
};

/** An http_take, with the reply as its context: keeps as much as there is room for. */
MUST_CHECK enum err reply_take(void *context, struct slice piece, struct error *err);

/** How many spans it rejected for good, and why. 0 if it took all, or says nothing that fits. Once
 * for a reply: its bytes may be others afterwards. */
uint64_t reply_rejected(struct reply *reply, char message[static REPLY_MESSAGE_BYTES]);

#endif
