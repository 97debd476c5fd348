/**
 * "host:port" and "[host]:port", as configurations name an address.
 * Lifetime: plain values. Threads: none of it is shared.
 */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include <stdbool.h>

struct address {
    char host[256]; /* a name or a number, without brackets */
    char port[6];   /* 1 to 65535 */
};

/** False if `text` does not have this form. Does not check whether the host exists. */
bool address_read(const char *text, struct address *ret);

#endif
