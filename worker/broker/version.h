/** The versions of librdkafka. Lifetime: static. Threads: any. */
#ifndef BROKER_VERSION_H
#define BROKER_VERSION_H

/** The first librdkafka that has `fetch.queue.backoff.ms`. */
enum { VERSION_FETCH_BACKOFF = 0x02020000 };

struct broker_version {
    const char *built;  /* of the header that was compiled against: "2.0.2" */
    const char *loaded; /* what the system's loader found */
};
struct broker_version broker_version(void);

#endif
