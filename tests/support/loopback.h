/** Sockets of tests on 127.0.0.1. */
#ifndef TESTS_SUPPORT_LOOPBACK_H
#define TESTS_SUPPORT_LOOPBACK_H

#include <netinet/in.h>

/** Listens at a port that was free, and is `ret`'s. */
int loopback_listen(struct sockaddr_in *ret);

/** Holds a port that was free, and is `ret`'s: nobody listens there, and nobody else is given it.
 * Who sets SO_REUSEADDR may listen there. */
int loopback_reserve(struct sockaddr_in *ret);

#endif
