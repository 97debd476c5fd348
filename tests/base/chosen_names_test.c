/* Keys, names of residents and ids of cancels are chosen by senders and looked up in tables by
 * their hash. Who could compute it beforehand would choose names that share a place in the table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "testing.h"

static const char NAME[] = "a name that a sender has chosen";

static uint64_t hash_of_name(void) {
    return hash_more(HASH_START, slice_of_text(NAME));
}

/* Of the same name in another process of this program. */
static uint64_t hash_elsewhere(void) {
    char text[32] = "";
    FILE *other = popen("exec \"/proc/$PPID/exe\" print", "r");
    assert_non_null(other);
    assert_non_null(fgets(text, sizeof text, other));
    assert_int_equal(pclose(other), 0);
    return strtoull(text, NULL, 16);
}

TEST(no_sender_can_know_where_a_name_stands_in_a_table) {
    uint64_t here = hash_of_name(), there = hash_elsewhere(), elsewhere = hash_elsewhere();
    assert_true(here == hash_of_name());
    assert_true(here != there && here != elsewhere && there != elsewhere);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {T(no_sender_can_know_where_a_name_stands_in_a_table)};
    if (argc == 1) return cmocka_run_group_tests(tests, NULL, NULL);
    printf("%llx\n", (unsigned long long)hash_of_name());
    return 0;
}
