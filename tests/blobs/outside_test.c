/* Proves: what a lane reads of a blob and writes of an output shows as outside of the worker. */
#include <unistd.h>

#include "base/pulse.h"
#include "blobs/blobs.h"
#include "support/scratch.h"
#include "testing.h"

enum { PART_BYTES = 256 << 10, BYTES = 3 * PART_BYTES + 1000 };

static struct pulse pulses[PULSE_COUNT];   /* the first is that of the tests */
static size_t outside_count, inside_count; /* reads and writes, by what the pulse said */
static uint8_t payload[BYTES], found[BYTES];

static void count_call(void) {
    if (pulses[0].is_outside != 0) outside_count++;
    else inside_count++;
}

ssize_t __real_pread(int fd, void *bytes, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t offset) {
    count_call();
    return __real_pread(fd, bytes, size, offset);
}

ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    count_call();
    return __real_pwrite(fd, bytes, size, offset);
}

TEST(a_thread_that_waits_for_the_disk_shows_it) {
    struct error err;
    struct blob blob;
    struct spool *spool;
    struct blobs *blobs;
    struct digest digest;
    char *dir = scratch_create();
    const struct blobs_options options = {
        .dir = dir, .bytes_max = BYTES, .held_bytes_max = 2 * BYTES};
    pulse_keep(pulses); /* before the first thread of the store */
    pulse_start("lane");
    assert_int_equal(blobs_create(&options, &blobs, &err), ERR_OK);
    assert_int_equal(blobs_create_spool(blobs, BYTES, &spool, &err), ERR_OK);
    pulse_busy();
    assert_int_equal(spool_write(spool, 0, slice_of(payload, BYTES), &err), ERR_OK);
    assert_int_equal(pulses[0].is_outside, 0);
    assert_int_equal(outside_count, 1);
    assert_int_equal(inside_count, 0);
    assert_int_equal(blobs_put_spool(blobs, spool, &digest, &err), ERR_OK);
    spool_destroy(spool);
    assert_int_equal(blob_open_parts(blobs, &digest, BYTES, &blob, &err), ERR_OK);
    outside_count = inside_count = 0;
    assert_int_equal(blob_read(&blob, 0, found, BYTES, &err), ERR_OK);
    assert_int_equal(pulses[0].is_outside, 0);
    assert_int_equal(outside_count, 4);
    assert_int_equal(inside_count, 0);
    pulse_idle();
    blob_fini(&blob);
    blobs_destroy(blobs);
    scratch_remove(dir);
}

RUN_TESTS(T(a_thread_that_waits_for_the_disk_shows_it))
