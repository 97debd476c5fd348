/**
 * The headers of W3C Trace Context that a message brings. Of several headers of a name the last one
 * counts. Threads: pure.
 */
#ifndef TRACE_CONTEXT_H
#define TRACE_CONTEXT_H

#include "broker/delivery.h"
#include "job/trace.h"

enum { TRACE_SAMPLED = 1 }; /* of the flags */

/** The sender's span. The texts lie in the delivery. */
struct trace_context {
    struct slice trace_id, span_id;
    uint8_t flags;
};

/** False: the message has no traceparent, or none that is valid. */
bool trace_context_read(const struct delivery *delivery, struct trace_context *ret);

/** The message's tracestate; empty where it has none that can be passed on as text. */
struct slice trace_state_of(const struct delivery *delivery);

#endif
