#include "trace/context.h"

enum { STATE_MAX = 512 }; /* as W3C Trace Context wants it to be passed on at least */

static int digit_of(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* An id of zeros is none. */
static bool is_id(struct slice text) {
    bool is_zero = true;
    for (size_t i = 0; i < text.size; i++) {
        int digit = digit_of(text.data[i]);
        if (digit < 0) return false;
        is_zero = is_zero && digit == 0;
    }
    return !is_zero;
}

static bool take_byte(struct slice *from, uint8_t *ret) {
    struct slice text;
    if (!slice_take(from, 2, &text)) return false;
    int high = digit_of(text.data[0]), low = digit_of(text.data[1]);
    *ret = (uint8_t)(high * 16 + low);
    return high >= 0 && low >= 0;
}

static bool take_dash(struct slice *from) {
    struct slice dash;
    return slice_take(from, 1, &dash) && dash.data[0] == '-';
}

static bool take_id(struct slice *from, size_t size, struct slice *ret) {
    return slice_take(from, size, ret) && is_id(*ret);
}

/* Later versions may add fields at the end. */
bool trace_context_read(const struct delivery *delivery, struct trace_context *ret) {
    struct slice rest;
    uint8_t version;
    if (!delivery_header(delivery, "traceparent", &rest)) return false;
    return take_byte(&rest, &version) && version != 0xff && take_dash(&rest) &&
           take_id(&rest, TRACE_ID_TEXT, &ret->trace_id) && take_dash(&rest) &&
           take_id(&rest, SPAN_ID_TEXT, &ret->span_id) && take_dash(&rest) &&
           take_byte(&rest, &ret->flags) &&
           (rest.size == 0 || (version > 0 && rest.data[0] == '-'));
}

struct slice trace_state_of(const struct delivery *delivery) {
    struct slice state = {0};
    if (!delivery_header(delivery, "tracestate", &state) || state.size > STATE_MAX)
        return slice_of(NULL, 0);
    for (size_t i = 0; i < state.size; i++)
        if (state.data[i] < ' ' || state.data[i] > '~') return slice_of(NULL, 0);
    return state;
}
