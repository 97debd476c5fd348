#include "support/loopback.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "testing.h"

enum { BACKLOG = 64 };

int loopback_reserve(struct sockaddr_in *ret) {
    const int on = 1;
    socklen_t size = sizeof *ret;
    *ret = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_return_code(bind(fd, (struct sockaddr *)ret, size), 0);
    assert_return_code(getsockname(fd, (struct sockaddr *)ret, &size), 0);
    return fd;
}

int loopback_listen(struct sockaddr_in *ret) {
    int fd = loopback_reserve(ret);
    assert_return_code(listen(fd, BACKLOG), 0);
    return fd;
}
