/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Loops that are shared by several threads, and threads that wait for the next loop. */
#include "cases.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/parallel.h"
#include "gather.h"
#include "plugin/plugin.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 100000, THREADS = 5, MOST_THREADS = 32 };

/* Counts of the visits to each index, and of the workers that are in the loop. */
struct meeting {
    atomic_int *met; /* [count] */
    atomic_int workers[MOST_THREADS];
    atomic_bool is_wrong; /* an impossible share or worker */
    int threads;
    int64_t count, grain;
};

static void meet(void *user, int64_t begin, int64_t end, int worker)
{
    struct meeting *meeting = user;
    const bool is_share = begin % meeting->grain == 0 && begin < end && end <= meeting->count &&
                          (end - begin == meeting->grain || end == meeting->count);
    if (!is_share || worker < 0 || worker >= meeting->threads || atomic_fetch_add(&meeting->workers[worker], 1) != 0) {
        atomic_store(&meeting->is_wrong, true);
        return;
    }
    for (int64_t k = begin; k < end; k++) atomic_fetch_add(&meeting->met[k], 1);
    atomic_fetch_sub(&meeting->workers[worker], 1);
}

static bool is_right(struct meeting *meeting)
{
    bool is = !atomic_load(&meeting->is_wrong);
    for (int64_t k = 0; k < meeting->count; k++) {
        is = is && atomic_load(&meeting->met[k]) == 1;
        atomic_store(&meeting->met[k], 0);
    }
    return is;
}

static bool shares_well(atomic_int *met, int threads, int64_t count, int64_t grain)
{
    struct meeting meeting = {.met = met, .threads = threads, .count = count, .grain = grain};
    lr_parallel_workers(threads, count, grain, meet, &meeting);
    return is_right(&meeting);
}

/* Number of threads of this process. */
static int count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void each_index_is_met_once(void **state)
{
    static const int64_t counts[] = {-5, 0, 1, 2, 7, 31, 1000, 4097, MOST}, grains[] = {1, 3, 64, 5000, 1 << 20};
    static const int threads[] = {1, 2, 3, THREADS, 7, MOST_THREADS};
    atomic_int *met = kept(MOST, sizeof(*met));
    for (int t = 0; t < 6; t++)
        for (int c = 0; c < 9; c++)
            for (int g = 0; g < 5; g++) assert_true(shares_well(met, threads[t], counts[c], grains[g]));
    for (int k = 0; k < 3000; k++) assert_true(shares_well(met, THREADS, 5 + k % 20, 1));
    struct meeting odd = {.met = met, .threads = 1, .count = 3, .grain = 1};
    lr_parallel_workers(0, 3, 0, meet, &odd);
    assert_true(is_right(&odd));
}

static void all_threads_work(void **state)
{
    for (int k = 0; k < 100; k++) assert_true(gather_threads(THREADS));
}

/* The caller finally does everything that no thread has begun; with one thread, all of it. */
static void callers_may_work_in_between(void **state)
{
    atomic_int *met = kept(1000, sizeof(*met)), *others = kept(1000, sizeof(*others));
    for (int threads = 0; threads <= THREADS; threads++) {
        for (int64_t count = 0; count <= 1000; count += count < 3 ? 1 : 997) {
            struct meeting meeting = {.met = met, .threads = threads > 0 ? threads : 1, .count = count, .grain = 3};
            struct lr_parallel loop = {.threads = threads, .count = count, .grain = 3, .body = meet, .user = &meeting};
            const bool has_others = threads > 1 && count > 3;
            lr_parallel_begin(&loop);
            const double begun_s = lr_clock_seconds(); /* a limit, in case of a hang */
            while (has_others && atomic_load(&met[0]) == 0 && lr_clock_seconds() < begun_s + 20) sched_yield();
            assert_int_equal(atomic_load(&met[0]), has_others);
            assert_true(shares_well(others, THREADS, 1000, 7));
            lr_parallel_end(&loop);
            assert_true(is_right(&meeting));
        }
    }
}

static void run_inner(void *user, int64_t begin, int64_t end, int worker)
{
    atomic_int met[50] = {0};
    for (int64_t k = begin; k < end; k++)
        if (!shares_well(met, THREADS, 50, 3)) atomic_store((atomic_bool *)user, true);
}

static void loops_may_be_in_loops(void **state)
{
    atomic_bool is_wrong = false;
    lr_parallel_workers(THREADS, 200, 1, run_inner, &is_wrong);
    assert_false(atomic_load(&is_wrong));
}

static void *call_often(void *is_wrong)
{
    for (int k = 0; k < 20; k++) run_inner(is_wrong, 0, 10, 0);
    return NULL;
}

static void threads_have_loops_at_a_time(void **state)
{
    pthread_t callers[4];
    atomic_bool is_wrong = false;
    for (int k = 0; k < 4; k++) assert_int_equal(pthread_create(&callers[k], NULL, call_often, &is_wrong), 0);
    for (int k = 0; k < 4; k++) pthread_join(callers[k], NULL);
    assert_false(atomic_load(&is_wrong));
}

/* Threads that have waited for a second end, and new ones are created later. */
static void loops_may_be_far_between(void **state)
{
    static const struct timespec pauses[] = {{.tv_nsec = 990000000}, {.tv_sec = 1}, {.tv_sec = 2}};
    atomic_int *met = kept(1000, sizeof(*met));
    for (int k = 0; k < 3; k++) {
        assert_true(shares_well(met, THREADS, 1000, 1) && gather_threads(THREADS));
        nanosleep(&pauses[k], NULL);
    }
    assert_true(shares_well(met, THREADS, 1000, 1) && gather_threads(THREADS));
}

/* The child ends with exit, which joins waiting threads: the child has no threads of its parent. */
static void a_child_has_its_own(void **state)
{
    atomic_int *met = kept(1000, sizeof(*met));
    int status = 0;
    assert_true(gather_threads(THREADS));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        const bool is_right =
            gather_threads(THREADS) && shares_well(met, THREADS, 1000, 7) && count_threads() == THREADS;
        exit(is_right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_all(WIFEXITED(status) && WEXITSTATUS(status) == 0, gather_threads(THREADS));
}

/* Loops of the library and of a plugin, which contains a copy of their code, share the threads of one pool. */
static void plugins_share_the_pool(void **state)
{
    double times = 3.0;
    assert_int_equal(setenv("LORASTER_PLUGINS", LR_TEST_PLUGINS, 1), 0);
    const struct lr_mpi_plugin *plugin = non_null(lr_plugin_mpi(NULL));
    for (int k = 0; k < 3; k++) {
        assert_true(gather_threads(THREADS));
        assert_ints(plugin->eigen(&times, NULL, THREADS), LR_OK, count_threads(), THREADS);
    }
}

static void fail_elsewhere(void *user, int64_t begin, int64_t end, int worker)
{
    while (worker == 0 && !atomic_load((atomic_bool *)user)) sched_yield(); /* another thread takes a share, too */
    if (worker > 0) lr_error(NULL, LR_BAD_INPUT, "share %d failed", (int)begin);
    if (worker > 0) atomic_store((atomic_bool *)user, true);
}

static void *have_no_error(void *user)
{
    lr_status status = LR_FAILED;
    *(bool *)user = lr_last_error(&status)[0] == '\0' && status == LR_OK;
    lr_error(NULL, LR_FAILED, "another thread's");
    return NULL;
}

static void fail_beside(void *user)
{
    lr_error(NULL, LR_USAGE, "in the background");
}

/* Each thread has its own last error, including errors of other threads in its loops and calls, and errors of
 * plugins. */
static void errors_reach_their_callers(void **state)
{
    lr_status status;
    pthread_t other;
    bool has_none = false;
    atomic_bool has_failed = false;
    struct lr_background background = {0};
    lr_parallel_workers(2, 2, 1, fail_elsewhere, &has_failed);
    assert_ints(strncmp(lr_last_error(&status), "share ", 6), 0, status, LR_BAD_INPUT);
    assert_int_equal(pthread_create(&other, NULL, have_no_error, &has_none), 0);
    pthread_join(other, NULL);
    assert_true(has_none);
    assert_int_equal(strncmp(lr_last_error(NULL), "share ", 6), 0);
    lr_background_start(&background, fail_beside, NULL);
    lr_background_wait(&background);
    assert_string_equal(lr_last_error(&status), "in the background");
    assert_int_equal(status, LR_USAGE);

    assert_int_equal(setenv("LORASTER_PLUGINS", LR_TEST_PLUGINS, 1), 0);
    const struct lr_mpi_plugin *plugin = non_null(lr_plugin_mpi(NULL));
    (void)plugin->eigen(NULL, NULL, -2);
    assert_says(lr_last_error(NULL), "of the plugin");
}

test_main("unit: parallel", CASE(each_index_is_met_once), CASE(all_threads_work), CASE(callers_may_work_in_between),
          CASE(loops_may_be_in_loops), CASE(threads_have_loops_at_a_time), CASE(loops_may_be_far_between),
          CASE(a_child_has_its_own), CASE(plugins_share_the_pool), CASE(errors_reach_their_callers))
