#include "base/list.h"

#include "testing.h"

enum { COUNT = 4 };

struct item {
    int number;
    struct list_node node; /* not the first field: it is found by its place */
};

static struct item items[COUNT];

static struct list list_of_all(void) {
    struct list list = {0};
    for (int i = 0; i < COUNT; i++) {
        items[i].number = i;
        list_append(&list, &items[i].node);
    }
    return list;
}

/* As digits, from the first on, and from the last on. */
static int read_forwards(const struct list *list) {
    int ret = 0;
    for (struct list_node *node = list->first; node != NULL; node = node->after)
        ret = 10 * ret + LIST_ITEM(node, struct item, node)->number;
    return ret;
}

static int read_backwards(const struct list *list) {
    int ret = 0;
    for (struct list_node *node = list->last; node != NULL; node = node->before)
        ret = 10 * ret + LIST_ITEM(node, struct item, node)->number;
    return ret;
}

TEST(a_list_keeps_the_order_in_which_nodes_were_appended) {
    struct list list = list_of_all();
    assert_int_equal(123, read_forwards(&list));
    assert_int_equal(3210, read_backwards(&list));
}

TEST(a_list_closes_the_gap_wherever_a_node_is_removed) {
    static const int forwards[COUNT] = {123, 23, 13, 12}, backwards[COUNT] = {321, 320, 310, 210};
    for (int i = 0; i < COUNT; i++) {
        struct list list = list_of_all();
        list_remove(&list, &items[i].node);
        assert_int_equal(forwards[i], read_forwards(&list));
        assert_int_equal(backwards[i], read_backwards(&list));
    }
}

TEST(a_list_is_empty_once_all_are_removed_and_takes_them_again) {
    struct list list = list_of_all();
    for (int i = 0; i < COUNT; i++) list_remove(&list, &items[i].node);
    assert_null(list.first);
    assert_null(list.last);
    list_append(&list, &items[2].node);
    list_append(&list, &items[1].node);
    assert_int_equal(21, read_forwards(&list));
    assert_int_equal(12, read_backwards(&list));
}

RUN_TESTS(T(a_list_keeps_the_order_in_which_nodes_were_appended),
    T(a_list_closes_the_gap_wherever_a_node_is_removed),
    T(a_list_is_empty_once_all_are_removed_and_takes_them_again))
