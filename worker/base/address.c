#include "base/address.h"

#include <stdint.h>
#include <string.h>

#include "base/number.h"

enum { PORT_MAX = 65535 };

static bool is_port(const char *text) {
    uint64_t port;
    size_t size = strlen(text);
    return size > 0 && number_read(text, &port) == size && port > 0 && port <= PORT_MAX;
}

bool address_read(const char *text, struct address *ret) {
    const char *colon = strrchr(text, ':');
    if (colon == NULL || !is_port(colon + 1)) return false;
    size_t size = (size_t)(colon - text);
    bool is_bracketed = text[0] == '[';
    if (is_bracketed) {
        if (size < 2 || colon[-1] != ']') return false;
        text++;
        size -= 2;
    }
    if (size == 0 || size >= sizeof ret->host) return false;
    /* an IPv6 address has colons, and stands in brackets */
    if (strcspn(text, is_bracketed ? "[]" : "[]:") < size) return false;
    memcpy(ret->host, text, size);
    ret->host[size] = 0;
    strcpy(ret->port, colon + 1); /* at most five digits, none of them a leading zero */
    return true;
}
