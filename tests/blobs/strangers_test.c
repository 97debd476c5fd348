/* No stranger empties the cache of blobs on disk. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "blobs/cache_rig.h"
#include "blobs/folder.h"

enum {
    BLOB_COUNT = 100,
    ROOM = 8,
    HOT = ROOM - 1 /* as many as are in regular use; the rest of the room is for others */
};

static int set_up(void **state) {
    start_cache(BLOB_COUNT, ROOM);
    return 0;
}

TEST(a_blob_that_nobody_has_makes_no_room_however_large_it_is_said_to_be) {
    struct blob blob;
    const struct digest absent = digest_of(slice_of_text("nobody has it"));
    for (size_t i = 0; i < ROOM; i++) assert_true(is_fetched(i));
    assert_int_equal(blob_open(blobs, &absent, ROOM * BLOB_BYTES, &blob, &err), ERR_BLOB_MISSING);
    for (size_t i = 0; i < ROOM; i++) assert_false(is_fetched(i));
}

TEST(a_blob_of_other_bytes_makes_no_room) {
    struct blob blob;
    for (size_t i = 0; i < ROOM; i++) assert_true(is_fetched(i));
    blob_server_set_mishap(server, MISHAP_WRONG_BYTES);
    assert_int_equal(
        blob_open(blobs, &digests[ROOM], BLOB_BYTES, &blob, &err), ERR_DIGEST_MISMATCH);
    blob_server_set_mishap(server, MISHAP_NONE);
    for (size_t i = 0; i < ROOM; i++) assert_false(is_fetched(i));
}

TEST(blobs_that_are_used_once_drive_out_none_that_is_used_again) {
    for (int uses = 0; uses < 3; uses++)
        for (size_t i = 0; i < HOT; i++) (void)is_fetched(i);
    for (size_t i = HOT; i < BLOB_COUNT; i++) (void)is_fetched(i);
    for (size_t i = 0; i < HOT; i++) assert_false(is_fetched(i));
}

TEST(blobs_that_are_used_twice_drive_out_none_that_is_used_more) {
    for (int uses = 0; uses < 5; uses++)
        for (size_t i = 0; i < HOT; i++) (void)is_fetched(i);
    for (size_t i = HOT; i < BLOB_COUNT; i++)
        for (int uses = 0; uses < 2; uses++) (void)is_fetched(i);
    for (size_t i = 0; i < HOT; i++) assert_false(is_fetched(i));
}

/* What was used much, and is not any more, gives way in the end. */
TEST(a_blob_of_old_fame_leaves) {
    for (int uses = 0; uses < 20; uses++)
        for (size_t i = 0; i < ROOM; i++) (void)is_fetched(i);
    bool is_kept = false;
    for (int uses = 0; uses < 100 && !is_kept; uses++) is_kept = !is_fetched(ROOM);
    assert_true(is_kept);
}

TEST(many_small_blobs_take_no_more_places_than_the_bytes_allow) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    struct blob blob;
    unsigned before = blob_server_gets(server);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 26; i++) {
            struct digest digest = blob_server_add(server, slice_of(letters + i, 1));
            assert_int_equal(blob_open(blobs, &digest, 1, &blob, &err), ERR_OK);
            blob_fini(&blob);
        }
    }
    assert_true(blob_server_gets(server) - before > 26);
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, end_cache)

TEST_MAIN() {
    const struct CMUnitTest tests[] = {
        S(a_blob_that_nobody_has_makes_no_room_however_large_it_is_said_to_be),
        S(a_blob_of_other_bytes_makes_no_room),
        S(blobs_that_are_used_once_drive_out_none_that_is_used_again),
        S(blobs_that_are_used_twice_drive_out_none_that_is_used_more),
        S(a_blob_of_old_fame_leaves),
        S(many_small_blobs_take_no_more_places_than_the_bytes_allow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
