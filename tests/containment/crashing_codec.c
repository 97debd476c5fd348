/* Preloaded, it makes messages with a mark in them crash the worker, as a mistake in its code
 * would: whoever decodes one, encodes an output of that name, or encodes any answer to that id. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <msgpack.h>
#include <signal.h>
#include <string.h>

static const char DECODED[] = "crash-the-decoder", OUTPUT[] = "crash-the-encoder",
                  ID[] = "crash-the-answers";

typedef msgpack_unpack_return unpack_function(
    const char *data, size_t size, size_t *offset, msgpack_zone *zone, msgpack_object *result);

msgpack_unpack_return msgpack_unpack(
    const char *data, size_t size, size_t *offset, msgpack_zone *zone, msgpack_object *result) {
    if (memmem(data, size, DECODED, sizeof DECODED - 1) != NULL) raise(SIGSEGV);
    unpack_function *next;
    *(void **)&next = dlsym(RTLD_NEXT, "msgpack_unpack");
    return next(data, size, offset, zone, result);
}

static int is(const void *from, size_t size, const char *mark, size_t mark_size) {
    return size >= mark_size && size < mark_size + 8 && memcmp(from, mark, mark_size) == 0;
}

/* A text of its own is copied where it is encoded; nowhere else on the way of a file's job. */
void *memcpy(void *to, const void *from, size_t size) {
    if (is(from, size, OUTPUT, sizeof OUTPUT - 1) || is(from, size, ID, sizeof ID - 1))
        raise(SIGSEGV);
    return memmove(to, from, size);
}
