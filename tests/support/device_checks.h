/** What a test asks of the CPU driver at its end. Threads: once all work is over. */
#ifndef TESTS_SUPPORT_DEVICE_CHECKS_H
#define TESTS_SUPPORT_DEVICE_CHECKS_H

/** No hazard, no memory that was let go too early or written to later, no broken guard. */
void device_assert_no_mistakes(void);

/** No mistake was made, and nothing that was made is still there. */
void device_assert_nothing_left(void);

#endif
