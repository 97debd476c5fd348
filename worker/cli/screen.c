#include "cli/screen.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static sigset_t resized(void) {
    sigset_t ret;
    sigemptyset(&ret);
    sigaddset(&ret, SIGWINCH);
    return ret;
}

bool screen_open(void) {
    const char *kind = getenv("TERM");
    if (isatty(STDOUT_FILENO) != 1 || kind == NULL || strcmp(kind, "dumb") == 0) return false;
    const sigset_t signals = resized();
    return sigprocmask(SIG_BLOCK, &signals, NULL) == 0;
}

size_t screen_fit(const char *page, size_t size, size_t rows, size_t columns) {
    if (rows == 0 || columns == 0) return size;
    size_t fit = 0;
    while (fit < size) {
        const char *end = memchr(page + fit, '\n', size - fit);
        size_t line = end != NULL ? (size_t)(end - page) - fit : size - fit;
        /* No character is wider than it has bytes. */
        size_t taken = line > columns ? (line + columns - 1) / columns : 1;
        if (taken > rows) return fit;
        rows -= taken;
        fit += line + (end != NULL);
    }
    return fit;
}

void screen_draw(const char *page, size_t size) {
    struct winsize window = {0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &window);
    /* The cursor stays in the last row. */
    size_t rows = window.ws_row > 1 ? window.ws_row - 1u : window.ws_row;
    size_t fit = screen_fit(page, size, rows, window.ws_col);
    if (fit < size) fit = screen_fit(page, size, rows > 1 ? rows - 1 : 1, window.ws_col);
    printf("\033[H\033[2J");
    fwrite(page, 1, fit, stdout);
    if (fit < size) printf("... (more in a larger window)");
    fflush(stdout);
}

void screen_wait(unsigned seconds) {
    const sigset_t signals = resized();
    (void)sigtimedwait(&signals, NULL, &(struct timespec){.tv_sec = seconds});
}
