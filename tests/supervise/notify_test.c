/* What systemd hears, at a socket of our own. */
#include "supervise/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "support/scratch.h"
#include "testing.h"

struct fixture {
    char *folder, *path;
    int fd; /* where systemd would listen */
};

static int listen_at(const struct sockaddr_un *at, socklen_t size) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)at, size), 0);
    return fd;
}

static int set_up(void **state) {
    static struct fixture fixture;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    log_init(LOG_OFF, LOG_TEXT);
    fixture.folder = scratch_create();
    assert_true(asprintf(&fixture.path, "%s/notify", fixture.folder) > 0);
    assert_true(snprintf(at.sun_path, sizeof at.sun_path, "%s", fixture.path) > 0);
    fixture.fd = listen_at(&at, sizeof at);
    setenv("NOTIFY_SOCKET", fixture.path, 1);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    close(fixture->fd);
    scratch_remove(fixture->folder);
    free(fixture->path);
    unsetenv("NOTIFY_SOCKET");
    return 0;
}

/* The next datagram; "" where none has come. */
static const char *heard(int fd) {
    static char text[1024];
    ssize_t size = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
    text[size > 0 ? size : 0] = 0;
    return text;
}

TEST(the_start_is_told_once) {
    int fd = ((struct fixture *)*state)->fd;
    struct notify *notify = notify_open();
    assert_string_equal(heard(fd), "");
    notify_ready(notify);
    notify_ready(notify);
    assert_string_equal(heard(fd), "READY=1");
    assert_string_equal(heard(fd), "");
    notify_close(notify);
}

TEST(a_reload_is_told_with_its_time_and_its_end) {
    int fd = ((struct fixture *)*state)->fd;
    uint64_t before_us = clock_ns() / 1000, told_us;
    struct notify *notify = notify_open();
    notify_ready(notify);
    (void)heard(fd);
    notify_reloading(notify);
    assert_int_equal(sscanf(heard(fd), "RELOADING=1\nMONOTONIC_USEC=%lu", &told_us), 1);
    assert_in_range(told_us, before_us, clock_ns() / 1000);
    notify_reloaded(notify);
    assert_string_equal(heard(fd), "READY=1");
    notify_reloaded(notify);
    assert_string_equal(heard(fd), "");
    notify_close(notify);
}

TEST(a_reload_before_the_start_makes_no_start) {
    int fd = ((struct fixture *)*state)->fd;
    struct notify *notify = notify_open();
    notify_reloading(notify);
    notify_reloaded(notify);
    assert_string_equal(heard(fd), "");
    notify_close(notify);
}

TEST(after_the_stop_no_start_and_no_reload_is_told) {
    int fd = ((struct fixture *)*state)->fd;
    struct notify *notify = notify_open();
    notify_stopping(notify);
    notify_stopping(notify);
    notify_ready(notify);
    notify_reloading(notify);
    notify_reloaded(notify);
    assert_string_equal(heard(fd), "STOPPING=1");
    assert_string_equal(heard(fd), "");
    notify_close(notify);
}

TEST(signs_of_life_come_twice_in_the_time_that_is_given) {
    int fd = ((struct fixture *)*state)->fd;
    setenv("WATCHDOG_USEC", "10000000", 1);
    struct notify *notify = notify_open();
    notify_alive(notify, 1000000000);
    assert_string_equal(heard(fd), "WATCHDOG=1");
    notify_alive(notify, 5999999999);
    assert_string_equal(heard(fd), "");
    notify_alive(notify, 6000000000);
    assert_string_equal(heard(fd), "WATCHDOG=1");
    notify_close(notify);
}

TEST(signs_of_life_are_not_told_where_nobody_asks_us) {
    static const struct {
        const char *whole_us, *pid;
    } all[] = {{"10000000", "1"}, {"10000000", ""}, {"0", NULL}, {"soon", NULL}, {"", NULL},
        {"99999999999999999999", NULL}, {"-5", NULL}};
    int fd = ((struct fixture *)*state)->fd;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        setenv("WATCHDOG_USEC", all[i].whole_us, 1);
        if (all[i].pid != NULL) setenv("WATCHDOG_PID", all[i].pid, 1);
        else unsetenv("WATCHDOG_PID");
        struct notify *notify = notify_open();
        notify_alive(notify, clock_ns());
        assert_string_equal(heard(fd), "");
        notify_close(notify);
    }
}

TEST(the_status_is_one_line_told_when_it_changes) {
    int fd = ((struct fixture *)*state)->fd;
    struct notify *notify = notify_open();
    notify_status(notify, "not ready: %s", "a\nREADY=1");
    assert_string_equal(heard(fd), "STATUS=not ready: a READY=1");
    notify_status(notify, "not ready: %s", "a\nREADY=1");
    assert_string_equal(heard(fd), "");
    notify_status(notify, "%s", "ready");
    assert_string_equal(heard(fd), "STATUS=ready");
    notify_close(notify);
}

/* The socket takes no more. */
static void fill(struct notify *notify) {
    for (int i = 0; i < 5000; i++)
        notify_status(notify, "number %d", i); /* more than sockets keep */
}

static void drain(int fd) {
    while (heard(fd)[0] != 0) {
    }
}

TEST(a_status_that_a_slow_reader_had_no_room_for_is_told_again) {
    int fd = ((struct fixture *)*state)->fd;
    struct notify *notify = notify_open();
    fill(notify);
    notify_status(notify, "%s", "ready");
    drain(fd);
    notify_status(notify, "%s", "ready");
    assert_string_equal(heard(fd), "STATUS=ready");
    notify_close(notify);
}

TEST(a_start_that_a_slow_reader_had_no_room_for_is_told_again) {
    int fd = ((struct fixture *)*state)->fd;
    struct notify *notify = notify_open();
    fill(notify);
    notify_ready(notify);
    drain(fd);
    notify_alive(notify, clock_ns());
    assert_string_equal(heard(fd), "READY=1");
    notify_alive(notify, clock_ns());
    assert_string_equal(heard(fd), "");
    notify_close(notify);
}

TEST(a_reload_that_a_slow_reader_had_no_room_for_is_told_again_with_its_end) {
    int fd = ((struct fixture *)*state)->fd;
    struct notify *notify = notify_open();
    notify_ready(notify);
    fill(notify);
    uint64_t before_us = clock_ns() / 1000, told_us;
    notify_reloading(notify);
    notify_reloaded(notify);
    uint64_t after_us = clock_ns() / 1000;
    drain(fd);
    notify_alive(notify, clock_ns());
    assert_int_equal(sscanf(heard(fd), "RELOADING=1\nMONOTONIC_USEC=%lu", &told_us), 1);
    assert_in_range(told_us, before_us, after_us);
    assert_string_equal(heard(fd), "READY=1");
    notify_alive(notify, clock_ns());
    assert_string_equal(heard(fd), "");
    notify_close(notify);
}

TEST(the_end_of_a_reload_that_a_slow_reader_had_no_room_for_is_told_again) {
    int fd = ((struct fixture *)*state)->fd;
    struct notify *notify = notify_open();
    notify_ready(notify);
    notify_reloading(notify);
    fill(notify);
    notify_reloaded(notify);
    drain(fd);
    notify_alive(notify, clock_ns());
    assert_string_equal(heard(fd), "READY=1");
    notify_close(notify);
}

TEST(a_stop_that_a_slow_reader_had_no_room_for_is_told_again_and_alone) {
    int fd = ((struct fixture *)*state)->fd;
    struct notify *notify = notify_open();
    notify_ready(notify);
    fill(notify);
    notify_reloading(notify);
    notify_stopping(notify);
    drain(fd);
    notify_alive(notify, clock_ns());
    assert_string_equal(heard(fd), "STOPPING=1");
    notify_alive(notify, clock_ns());
    assert_string_equal(heard(fd), "");
    notify_close(notify);
}

TEST(a_sign_of_life_that_a_slow_reader_had_no_room_for_is_told_again) {
    int fd = ((struct fixture *)*state)->fd;
    setenv("WATCHDOG_USEC", "10000000", 1);
    struct notify *notify = notify_open();
    fill(notify);
    notify_alive(notify, 1000000000);
    drain(fd);
    notify_alive(notify, 1100000000);
    assert_string_equal(heard(fd), "WATCHDOG=1");
    notify_close(notify);
}

TEST(a_status_of_any_length_is_cut) {
    char long_text[3000];
    int fd = ((struct fixture *)*state)->fd;
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    struct notify *notify = notify_open();
    notify_status(notify, "%s", long_text);
    assert_in_range(strlen(heard(fd)), 100, 511);
    notify_close(notify);
}

TEST(an_abstract_socket_hears_the_same) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char name[64];
    int size = snprintf(name, sizeof name, "@gpu-worker-notify-test-%d", getpid());
    memcpy(at.sun_path + 1, name + 1, (size_t)size - 1);
    int fd = listen_at(&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)size));
    setenv("NOTIFY_SOCKET", name, 1);
    struct notify *notify = notify_open();
    notify_ready(notify);
    assert_string_equal(heard(fd), "READY=1");
    notify_close(notify);
    close(fd);
}

TEST(a_name_that_is_no_socket_tells_nobody) {
    static const char *const names[] = {"", "notify", "vsock:2:1234", "/nowhere/at/all", "@"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        struct notify *notify = notify_open();
        notify_ready(notify);
        notify_status(notify, "%s", "goes on");
        notify_close(notify);
    }
    char long_name[300];
    memset(long_name, '/', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    setenv("NOTIFY_SOCKET", long_name, 1);
    assert_null(notify_open());
    unsetenv("NOTIFY_SOCKET");
    assert_null(notify_open());
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(the_start_is_told_once), F(a_reload_is_told_with_its_time_and_its_end),
    F(a_reload_before_the_start_makes_no_start), F(after_the_stop_no_start_and_no_reload_is_told),
    F(signs_of_life_come_twice_in_the_time_that_is_given),
    F(signs_of_life_are_not_told_where_nobody_asks_us),
    F(the_status_is_one_line_told_when_it_changes), F(a_status_of_any_length_is_cut),
    F(a_status_that_a_slow_reader_had_no_room_for_is_told_again),
    F(a_start_that_a_slow_reader_had_no_room_for_is_told_again),
    F(a_reload_that_a_slow_reader_had_no_room_for_is_told_again_with_its_end),
    F(the_end_of_a_reload_that_a_slow_reader_had_no_room_for_is_told_again),
    F(a_stop_that_a_slow_reader_had_no_room_for_is_told_again_and_alone),
    F(a_sign_of_life_that_a_slow_reader_had_no_room_for_is_told_again),
    F(an_abstract_socket_hears_the_same), F(a_name_that_is_no_socket_tells_nobody))
