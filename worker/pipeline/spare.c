#include "pipeline/spare.h"

#include <poll.h>
#include <unistd.h>

#include "base/exit.h"
#include "gpu/event.h"
#include "gpu/lease.h"
#include "pipeline/resources.h"

enum { LOOK_MS = 1000 };

/* Waits for a moment. Nothing has begun, so nothing has to be ended in order. */
static bool is_told_to_begin(const struct stages *stages, int fd) {
    struct pollfd told = {.fd = fd, .events = POLLIN};
    char byte;
    bool is_told = poll(&told, 1, LOOK_MS) > 0;
    if (stages_must_stop(stages) || (is_told && read(fd, &byte, 1) != 1)) _exit(CLI_OK);
    return is_told;
}

/*
 * What takes the device from the executor may take it from the spare as well. A spare that looks
 * again and again is replaced before it is needed, and no job is in hand where it is not.
 */
enum err spare_wait(struct stages *stages, int fd, struct error *err) {
    struct stream_lease lease;
    enum err code = resources_fill_pools(stages, err);
    if (code == ERR_OK) code = stream_lease_take(stages->leases, false, &lease, err);
    if (code != ERR_OK) return code;
    (void)!write(fd, "", 1); /* refused where the supervisor has told it to begin already */
    for (bool is_told = false; code == ERR_OK && !is_told;) {
        is_told = is_told_to_begin(stages, fd);
        code = stream_wait(&stages->device, lease.stream, err);
    }
    if (err_is_sticky(code)) stages_fail(stages, err);
    if (code != ERR_OK) return code;
    close(fd);
    return stream_lease_release(stages->leases, &lease, err);
}
