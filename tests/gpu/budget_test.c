/* Proves: budgets; exact accounts of memory. */
#include "gpu/budget.h"

#include <pthread.h>
#include <string.h>

#include "testing.h"

static struct budget budget_of(uint64_t limit) {
    struct budget budget;
    budget_init(&budget, "test pool", ERR_DEVICE_MEMORY, limit);
    return budget;
}

TEST(charges_up_to_the_limit_pass_and_one_byte_more_changes_nothing) {
    struct budget budget = budget_of(100);
    struct error err;
    assert_int_equal(ERR_OK, budget_charge(&budget, 60, &err));
    assert_int_equal(ERR_OK, budget_charge(&budget, 40, &err));
    assert_int_equal(ERR_DEVICE_MEMORY, budget_charge(&budget, 1, &err));
    assert_string_equal(
        "test pool: 100 of 100 bytes are taken, and 1 more would pass the limit", err.message);
    assert_true(strlen(err.fix) > 0);
    assert_int_equal(100, budget_charged(&budget));
    assert_int_equal(ERR_OK, budget_charge(&budget, 0, &err));
}

TEST(what_is_refunded_can_be_charged_again) {
    struct budget budget = budget_of(100);
    struct error err;
    assert_int_equal(ERR_OK, budget_charge(&budget, 100, &err));
    assert_int_equal(ERR_OK, budget_refund(&budget, 30, &err));
    assert_int_equal(ERR_OK, budget_charge(&budget, 30, &err));
    assert_int_equal(ERR_OK, budget_refund(&budget, 100, &err));
    assert_int_equal(0, budget_charged(&budget));
}

TEST(a_refund_of_more_than_was_charged_is_an_error_that_names_everything) {
    struct budget budget = budget_of(100);
    struct error err;
    assert_int_equal(ERR_OK, budget_charge(&budget, 10, &err));
    assert_int_equal(ERR_INTERNAL, budget_refund(&budget, 11, &err));
    assert_string_equal(
        "test pool: charged_bytes is 10, and a refund of 11 bytes would wrap it", err.message);
    assert_int_equal(10, budget_charged(&budget));
}

TEST(a_charge_that_would_wrap_is_an_error_that_names_everything) {
    struct budget budget = budget_of(UINT64_MAX);
    struct error err;
    assert_int_equal(ERR_OK, budget_charge(&budget, UINT64_MAX - 1, &err));
    assert_int_equal(ERR_INTERNAL, budget_charge(&budget, 2, &err));
    assert_string_equal("test pool: charged_bytes is 18446744073709551614, and a charge of 2 bytes "
                        "would wrap it",
        err.message);
    assert_true(budget_charged(&budget) == UINT64_MAX - 1);
    assert_int_equal(ERR_OK, budget_charge(&budget, 1, &err));
}

TEST(a_lowered_limit_takes_nothing_back_and_lets_nothing_in) {
    struct budget budget = budget_of(100);
    struct error err;
    assert_int_equal(ERR_OK, budget_charge(&budget, 80, &err));
    budget_set_limit(&budget, 50);
    assert_int_equal(50, budget_limit(&budget));
    assert_int_equal(80, budget_charged(&budget));
    assert_int_equal(ERR_DEVICE_MEMORY, budget_charge(&budget, 1, &err));
    assert_int_equal(ERR_OK, budget_refund(&budget, 40, &err));
    assert_int_equal(ERR_OK, budget_charge(&budget, 10, &err));
}

enum { THREADS = 16, ROUNDS = 2000, LIMIT = 1000 };

struct rush {
    struct budget budget;
    atomic_uint next_thread, mistakes;
};

static void *charge_and_refund(void *context) {
    struct rush *rush = context;
    uint64_t bytes = 70 + atomic_fetch_add(&rush->next_thread, 1);
    struct error err;
    for (int i = 0; i < ROUNDS; i++) {
        enum err code = budget_charge(&rush->budget, bytes, &err);
        if (budget_charged(&rush->budget) > LIMIT) atomic_fetch_add(&rush->mistakes, 1);
        if (code == ERR_OK) code = budget_refund(&rush->budget, bytes, &err);
        if (code != ERR_OK && code != ERR_DEVICE_MEMORY) atomic_fetch_add(&rush->mistakes, 1);
    }
    return NULL;
}

TEST(many_threads_never_pass_the_limit_and_end_at_nothing) {
    struct rush rush = {.budget = budget_of(LIMIT)};
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, charge_and_refund, &rush));
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(0, atomic_load(&rush.mistakes));
    assert_int_equal(0, budget_charged(&rush.budget));
}

RUN_TESTS(T(charges_up_to_the_limit_pass_and_one_byte_more_changes_nothing),
    T(what_is_refunded_can_be_charged_again),
    T(a_refund_of_more_than_was_charged_is_an_error_that_names_everything),
    T(a_charge_that_would_wrap_is_an_error_that_names_everything),
    T(a_lowered_limit_takes_nothing_back_and_lets_nothing_in),
    T(many_threads_never_pass_the_limit_and_end_at_nothing))
