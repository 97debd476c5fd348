#include "base/digest.h"

#include <stdio.h>

#include "testing.h"

/* FIPS 180-2, appendix B.1. */
static const char abc[] = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
static const char nothing[] =
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST(digests_are_those_of_the_standard) {
    char text[DIGEST_TEXT_SIZE];
    struct digest digest = digest_of(slice_of_text("abc"));
    assert_string_equal(digest_format(&digest, text), abc);
    digest = digest_of(slice_of("", 0));
    assert_string_equal(digest_format(&digest, text), nothing);
}

TEST(what_is_formatted_parses_back) {
    char text[DIGEST_TEXT_SIZE];
    struct digest digest = digest_of(slice_of_text("some bytes")), parsed;
    assert_true(digest_parse(slice_of_text(digest_format(&digest, text)), &parsed));
    assert_true(digest_equal(&digest, &parsed));
}

TEST(pieces_have_the_digest_of_the_whole) {
    struct digester *digester = digester_create();
    assert_non_null(digester);
    digester_add(digester, slice_of_text("a"));
    digester_add(digester, slice_of("", 0));
    digester_add(digester, slice_of_text("bc"));
    struct digest whole = digest_of(slice_of_text("abc")), pieces = digester_finish(digester);
    assert_true(digest_equal(&whole, &pieces));
    digester_destroy(digester);
    digester_destroy(NULL);
}

TEST(digests_differ_by_any_byte) {
    struct digest a = digest_of(slice_of_text("abc")), b = a;
    assert_true(digest_equal(&a, &b));
    b.bytes[31] ^= 1;
    assert_false(digest_equal(&a, &b));
}

TEST(parse_refuses_other_forms_and_leaves_the_digest) {
    struct digest digest = {.bytes = {7}};
    char bad[128];
    assert_false(digest_parse(slice_of("", 0), &digest));
    assert_false(digest_parse(slice_of_text("sha256:"), &digest));
    assert_false(digest_parse(slice_of_text(abc + 7), &digest));
    assert_false(digest_parse(slice_of(abc, sizeof abc - 2), &digest)); /* a digit short */
    assert_false(digest_parse(slice_of(abc, sizeof abc), &digest));     /* a NUL more */
    snprintf(bad, sizeof bad, "md5sum:%s", abc + 7);
    assert_false(digest_parse(slice_of_text(bad), &digest));
    snprintf(bad, sizeof bad, "%s", abc);
    bad[7] = 'B'; /* one payload, one name: upper case is none */
    assert_false(digest_parse(slice_of_text(bad), &digest));
    bad[7] = 'g';
    assert_false(digest_parse(slice_of_text(bad), &digest));
    assert_int_equal(digest.bytes[0], 7);
}

/* Nobody can choose payloads whose digests meet in a table: each byte counts. */
TEST(the_hash_for_tables_differs_by_any_byte) {
    struct digest digest = digest_of(slice_of_text("x"));
    uint64_t hash = digest_hash(&digest);
    assert_true(digest_hash(&digest) == hash);
    for (size_t i = 0; i < sizeof digest.bytes; i++) {
        struct digest other = digest;
        other.bytes[i] ^= 1;
        assert_true(digest_hash(&other) != hash);
    }
}

RUN_TESTS(T(digests_are_those_of_the_standard), T(what_is_formatted_parses_back),
    T(pieces_have_the_digest_of_the_whole), T(digests_differ_by_any_byte),
    T(parse_refuses_other_forms_and_leaves_the_digest), T(the_hash_for_tables_differs_by_any_byte))
