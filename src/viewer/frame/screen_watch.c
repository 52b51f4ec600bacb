/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/frame/screen_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

/* No flush and no cleaning up: other threads hold whatever locks they hold. Outputs have their names
 * only when they are whole. */
static void end_program(void)
{
    static const char sentence[] = "loraster: error: the screen that the window was on has gone "
                                   "away: start the viewer again\n";
    (void)!write(STDERR_FILENO, sentence, sizeof(sentence) - 1);
    _exit(1);
}

static void *watch_screen(void *user)
{
    struct screen_watch *watch = user;
    struct pollfd ends[2] = {{.fd = watch->screen}, {.fd = watch->ends[0]}};
    while (poll(ends, 2, -1) < 0 && errno == EINTR) {
    }
    if (ends[1].revents == 0 && (ends[0].revents & (POLLHUP | POLLERR)) != 0) end_program();
    return NULL;
}

void screen_watch_start(struct screen_watch *watch, int screen)
{
    *watch = (struct screen_watch){.screen = screen};
    if (screen < 0 || pipe(watch->ends) != 0) return;
    for (int k = 0; k < 2; k++) fcntl(watch->ends[k], F_SETFD, FD_CLOEXEC);
    watch->is_running = pthread_create(&watch->thread, NULL, watch_screen, watch) == 0;
    if (!watch->is_running) {
        close(watch->ends[0]);
        close(watch->ends[1]);
    }
}

void screen_watch_stop(struct screen_watch *watch)
{
    if (watch->is_running) {
        close(watch->ends[1]);
        pthread_join(watch->thread, NULL);
        close(watch->ends[0]);
        watch->is_running = false;
    }
}
