/* Preloaded, it makes messages with a mark in them crash the worker, as a mistake in its code
 * would: decoding a program of that name, encoding an output of that name, or encoding any answer
 * to that id. */
#include <signal.h>
#include <string.h>

static const char DECODED[] = "crash-the-decoder", OUTPUT[] = "crash-the-encoder",
                  ID[] = "crash-the-answers";

static int is(const void *from, size_t size, const char *mark, size_t mark_size) {
    return size >= mark_size && size < mark_size + 8 && memcmp(from, mark, mark_size) == 0;
}

/* A program's name is searched for a pin while it is decoded, and nowhere else. */
void *memchr(const void *from, int byte, size_t size) {
    if (is(from, size, DECODED, sizeof DECODED - 1)) raise(SIGSEGV);
    for (const unsigned char *at = from; size > 0; at++, size--)
        if (*at == (unsigned char)byte) return (void *)at;
    return NULL;
}

/* A text of its own is copied where it is encoded; nowhere else on the way of a file's job. */
void *memcpy(void *to, const void *from, size_t size) {
    if (is(from, size, OUTPUT, sizeof OUTPUT - 1) || is(from, size, ID, sizeof ID - 1))
        raise(SIGSEGV);
    return memmove(to, from, size);
}
