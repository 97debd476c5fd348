/* Preloaded, it makes decoding a message with a mark in it a crash, as a mistake in a decoder
 * would. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <msgpack.h>
#include <signal.h>
#include <string.h>

static const char MARK[] = "crash-the-decoder";

typedef msgpack_unpack_return unpack_function(
    const char *data, size_t size, size_t *offset, msgpack_zone *zone, msgpack_object *result);

msgpack_unpack_return msgpack_unpack(
    const char *data, size_t size, size_t *offset, msgpack_zone *zone, msgpack_object *result) {
    if (memmem(data, size, MARK, sizeof MARK - 1) != NULL) raise(SIGSEGV);
    unpack_function *next;
    *(void **)&next = dlsym(RTLD_NEXT, "msgpack_unpack");
    return next(data, size, offset, zone, result);
}
