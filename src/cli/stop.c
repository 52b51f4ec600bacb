/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "stop.h"

#include "report.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* Work has 25 ticks of 50 ms to stop. No tick arrives while the program waits for a processor or for the disk, and
 * those that are missed are not made up for. So a file that the disk is slow to take is not said to be stopped. */
enum { TICK_NS = 50 * 1000 * 1000, MOST_TICKS = 25 };

/* State of the signal handlers, which can use only static variables. */
static volatile sig_atomic_t is_asked, has_timer, is_terminal, num_ticks;
static timer_t timer;

/* --- signal handlers, and functions that they may call --- */

static void set_timer(long interval_ns)
{
    const struct timespec step = {0, interval_ns};
    const struct itimerspec when = {step, step};
    if (has_timer) timer_settime(timer, 0, &when, NULL);
}

static void on_tick(int number)
{
    static const char words[] = "\r\033[Kloraster: stopped\n"; /* the progress line is cleared first, on terminals */
    const int skipped = is_terminal ? 0 : 4;
    const int interrupted = errno; /* the interrupted code may still need it */
    (void)number;
    num_ticks++;
    if (num_ticks >= MOST_TICKS) {
        const ssize_t written = write(STDERR_FILENO, words + skipped, sizeof(words) - 1 - (size_t)skipped);
        (void)written;
        _exit(CLI_FAILED);
    }
    errno = interrupted;
}

static void on_signal(int number)
{
    const int interrupted = errno;
    (void)number;
    if (!is_asked) {
        is_asked = 1;
        set_timer(TICK_NS);
    }
    errno = interrupted;
}

/* --- outside of signal handlers --- */

static const int asking[] = {SIGINT, SIGTERM, SIGHUP};
enum { NUM_ASKING = sizeof(asking) / sizeof(asking[0]) };

void stop_hold_signals(bool holds)
{
    sigset_t set;
    sigemptyset(&set);
    for (int k = 0; k < NUM_ASKING; k++) sigaddset(&set, asking[k]);
    sigprocmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void stop_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART}, before;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    sigemptyset(&action.sa_mask);
    is_terminal = isatty(STDERR_FILENO) == 1;
    sigaction(SIGALRM, &action, NULL); /* ticks do not interrupt a read or write */
    has_timer = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND; /* a second signal has its default effect */
    for (int k = 0; k < NUM_ASKING; k++) {
        const bool is_ignored =
            asking[k] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN; /* nohup */
        if (!is_ignored) sigaction(asking[k], &action, NULL);
    }
    /* A file beyond ulimit -f, or a pipe without a reader, then makes write() return an error. */
    action.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
    stop_hold_signals(false);
}

bool stop_is_asked(void)
{
    return is_asked != 0;
}

void stop_wait_for_results(void)
{
    set_timer(0);
}

void stop_end(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    sigemptyset(&action.sa_mask);
    for (int k = 0; k < NUM_ASKING; k++) sigaction(asking[k], &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    set_timer(0);
}
