/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The program ends when its screen is gone, even if its main thread never asks the screen for anything. */
#include "cases.h"

#include "viewer/frame/window.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A program with a window on the connection `screen`: writes a byte to `said`, and then is busy for ever. */
static void be_busy(int screen, int said, int errors)
{
    struct screen_watch watch;
    dup2(errors, STDERR_FILENO);
    screen_watch_start(&watch, screen);
    (void)!write(said, "!", 1);
    for (volatile int k = 0;; k = !k) {
    }
}

static void a_busy_program_ends_with_its_screen(void **state)
{
    int screen[2], said[2], errors[2], way;
    char text[200] = "";
    assert_ints(socketpair(AF_UNIX, SOCK_STREAM, 0, screen), 0, pipe(said), 0, pipe(errors), 0);
    const pid_t program = fork();
    assert_true(program >= 0);
    if (program == 0) {
        close(screen[1]);
        be_busy(screen[0], said[1], errors[1]);
    }
    close(screen[0]);
    close(errors[1]);
    assert_int_equal(read(said[0], text, 1), 1);
    assert_int_equal(write(screen[1], "an event", 8), 8); /* an event does not end the program */
    assert_int_equal(waitpid(program, &way, WNOHANG), 0);
    close(screen[1]);
    assert_int_equal(waitpid(program, &way, 0), program);
    assert_true(WIFEXITED(way));
    assert_int_equal(WEXITSTATUS(way), 1);
    assert_true(read(errors[0], text, sizeof(text) - 1) > 0);
    assert_says(text, "loraster: error: the screen");
    close(errors[0]);
    close(said[0]);
    close(said[1]);
}

/* After the watch has been stopped, the connection may be closed. */
static void stopping_ends_the_watch(void **state)
{
    int screen[2];
    struct screen_watch watch = {0};
    screen_watch_stop(&watch);
    screen_watch_start(&watch, -1);
    screen_watch_stop(&watch);
    for (int turn = 0; turn < 200; turn++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, screen), 0);
        screen_watch_start(&watch, screen[0]);
        assert_true(watch.is_running);
        screen_watch_stop(&watch);
        close(screen[1]);
        close(screen[0]);
    }
}

test_main("viewer_screen_watch", cmocka_unit_test(a_busy_program_ends_with_its_screen),
          cmocka_unit_test(stopping_ends_the_watch))
