/* The yardstick: a server that only finds the frames and answers each with the same bytes, its correlation id echoed.
 *
 * One thread, epoll, one read and one write for everything that arrived on a connection. The answer has the size of
 * a Heartbeat v4 answer (16 bytes with the size field). Prints `ready HOST:PORT`; ends with SIGTERM.
 *
 * usage: server
 */
#include "common.h"

#define READ_BYTES (256 * 1024)
#define ANSWER_BYTES 16

typedef struct {
    int fd;
    size_t length, out_start, out_end;
    uint8_t in[READ_BYTES];
    uint8_t out[READ_BYTES];
} client;

static int poller;

static void drop(client *c) {
    close(c->fd);
    free(c);
}

/* Answers every whole frame that is there, as far as there is room for answers. */
static int answer_frames(client *c) {
    size_t at = 0;
    while (c->length - at >= 4) {
        uint32_t size = get_u32(c->in + at);
        if (size < 8 || size > READ_BYTES - 4) return -1;
        if (c->length - at < size + 4 || c->out_end + ANSWER_BYTES > sizeof c->out) break;
        uint8_t *to = c->out + c->out_end;
        memset(to, 0, ANSWER_BYTES);
        put_u32(to, ANSWER_BYTES - 4);
        memcpy(to + 4, c->in + at + CORRELATION_ID_AT, 4);
        c->out_end += ANSWER_BYTES;
        at += size + 4;
    }
    memmove(c->in, c->in + at, c->length - at);
    c->length -= at;
    return 0;
}

static int serve(client *c, uint32_t events) {
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && c->length < sizeof c->in) {
        ssize_t got = read(c->fd, c->in + c->length, sizeof c->in - c->length);
        if (got == 0 || (got < 0 && errno != EAGAIN)) return -1;
        if (got > 0) c->length += (size_t)got;
    }
    int had_rest = c->out_start < c->out_end;
    if (answer_frames(c) < 0) return -1;
    if (c->out_start < c->out_end) {
        ssize_t sent = write(c->fd, c->out + c->out_start, c->out_end - c->out_start);
        if (sent < 0 && errno != EAGAIN) return -1;
        if (sent > 0) c->out_start += (size_t)sent;
    }
    int has_rest = c->out_start < c->out_end;
    if (!has_rest) c->out_start = c->out_end = 0;
    if (has_rest != had_rest) {
        struct epoll_event event = {.events = has_rest ? EPOLLOUT : EPOLLIN, .data.ptr = c};
        epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
    }
    return 0;
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1024) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) < 0)
        die("cannot listen: %s", strerror(errno));
    poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    printf("ready 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);

    struct epoll_event events[256];
    for (;;) {
        int ready = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < ready; i++) {
            client *c = events[i].data.ptr;
            if (c) {
                if (serve(c, events[i].events) < 0) drop(c);
                continue;
            }
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0) continue;
            int on = 1;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            c = take(sizeof *c);
            c->fd = fd;
            event = (struct epoll_event){.events = EPOLLIN, .data.ptr = c};
            epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
        }
    }
}
