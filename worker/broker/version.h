/** The versions of librdkafka. Lifetime: static. Threads: any. */
#ifndef BROKER_VERSION_H
#define BROKER_VERSION_H

struct broker_version {
    const char *built;  /* of the header that was compiled against: "2.0.2" */
    const char *loaded; /* what the system's loader found */
};
struct broker_version broker_version(void);

#endif
