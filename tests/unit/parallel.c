/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Loops that several threads share, and the threads that wait for the next one. */
#include "cases.h"

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

enum { MOST = 100000, THREADS = 5 };

/* Counts of the visits to each index, and of the workers that are in the loop. */
struct meeting {
    atomic_int *met; /* [count] */
    atomic_int workers[THREADS];
    atomic_bool is_wrong; /* a share or a worker that cannot be */
    int64_t count, grain;
};

static void meet(void *user, int64_t begin, int64_t end, int worker)
{
    struct meeting *meeting = user;
    const bool is_share = begin % meeting->grain == 0 && begin < end && end <= meeting->count &&
                          (end - begin == meeting->grain || end == meeting->count);
    if (!is_share || worker < 0 || worker >= THREADS || atomic_fetch_add(&meeting->workers[worker], 1) != 0) {
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

/* A loop of all threads. */
static bool shares_well(atomic_int *met, int64_t count, int64_t grain)
{
    struct meeting meeting = {.met = met, .count = count, .grain = grain};
    lr_parallel_for(THREADS, count, grain, meet, &meeting);
    return is_right(&meeting);
}

/* Threads of this process. */
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

static atomic_int *make_met(int64_t count)
{
    atomic_int *met = calloc((size_t)count, sizeof(*met));
    assert_non_null(met);
    return met;
}

static void each_index_is_met_once(void **state)
{
    static const int64_t counts[] = {0, 1, 2, 7, 1000, MOST}, grains[] = {1, 3, 64, 1 << 20};
    atomic_int *met = make_met(MOST);
    for (int c = 0; c < 6; c++)
        for (int g = 0; g < 4; g++) assert_true(shares_well(met, counts[c], grains[g]));
    for (int k = 0; k < 3000; k++) assert_true(shares_well(met, 5 + k % 20, 1));
    free(met);
}

static void all_threads_work(void **state)
{
    for (int k = 0; k < 100; k++) assert_true(gather_threads(THREADS));
}

static void callers_may_work_in_between(void **state)
{
    atomic_int *met = make_met(1000), *others = make_met(1000);
    struct meeting meeting = {.met = met, .count = 1000, .grain = 10};
    struct lr_parallel loop = {.threads = THREADS, .count = 1000, .grain = 10, .body = meet, .user = &meeting};
    lr_parallel_begin(&loop);
    assert_true(shares_well(others, 1000, 7));
    lr_parallel_end(&loop);
    assert_true(is_right(&meeting));
    free(met);
    free(others);
}

static void run_inner(void *user, int64_t begin, int64_t end, int worker)
{
    atomic_int *met = make_met(50);
    for (int64_t k = begin; k < end; k++)
        if (!shares_well(met, 50, 3)) atomic_store((atomic_bool *)user, true);
    free(met);
}

static void loops_may_be_in_loops(void **state)
{
    atomic_bool is_wrong;
    atomic_init(&is_wrong, false);
    lr_parallel_for(THREADS, 200, 1, run_inner, &is_wrong);
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
    atomic_bool is_wrong;
    atomic_init(&is_wrong, false);
    for (int k = 0; k < 4; k++) assert_int_equal(pthread_create(&callers[k], NULL, call_often, &is_wrong), 0);
    for (int k = 0; k < 4; k++) pthread_join(callers[k], NULL);
    assert_false(atomic_load(&is_wrong));
}

/* Threads that have waited for a second are gone, and others come. */
static void loops_may_be_far_between(void **state)
{
    static const struct timespec pauses[] = {{.tv_nsec = 990000000}, {.tv_sec = 1}, {.tv_sec = 2}};
    atomic_int *met = make_met(1000);
    for (int k = 0; k < 3; k++) {
        assert_true(shares_well(met, 1000, 1) && gather_threads(THREADS));
        nanosleep(&pauses[k], NULL);
    }
    assert_true(shares_well(met, 1000, 1) && gather_threads(THREADS));
    free(met);
}

/* The child ends by exit, which joins waiting threads: it has none of its parent's. */
static void a_child_has_its_own(void **state)
{
    atomic_int *met = make_met(1000);
    int status = 0;
    assert_true(gather_threads(THREADS));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        const bool is_right = gather_threads(THREADS) && shares_well(met, 1000, 7) && count_threads() == THREADS;
        free(met);
        exit(is_right ? 0 : 1);
    }
    free(met);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(gather_threads(THREADS));
}

/* Loops of the library and of a plugin, which has a copy of their code, share the threads of one pool. */
static void plugins_share_the_pool(void **state)
{
    double times = 3.0;
    assert_int_equal(setenv("LORASTER_PLUGINS", LR_TEST_PLUGINS, 1), 0);
    const struct lr_mpi_plugin *plugin = lr_plugin_mpi(NULL);
    assert_non_null(plugin);
    for (int k = 0; k < 3; k++) {
        assert_true(gather_threads(THREADS));
        assert_ok(plugin->eigen(&times, NULL, THREADS));
        assert_int_equal(count_threads(), THREADS);
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

/* A thread's last error is its own, those that others make in its loops and calls included, and those of plugins. */
static void errors_reach_their_callers(void **state)
{
    lr_status status;
    pthread_t other;
    bool has_none = false;
    atomic_bool has_failed;
    struct lr_background background = {0};
    atomic_init(&has_failed, false);
    lr_parallel_for(2, 2, 1, fail_elsewhere, &has_failed);
    assert_int_equal(strncmp(lr_last_error(&status), "share ", 6), 0);
    assert_int_equal(status, LR_BAD_INPUT);
    assert_int_equal(pthread_create(&other, NULL, have_no_error, &has_none), 0);
    pthread_join(other, NULL);
    assert_true(has_none);
    assert_int_equal(strncmp(lr_last_error(NULL), "share ", 6), 0);
    lr_background_start(&background, fail_beside, NULL);
    lr_background_wait(&background);
    assert_string_equal(lr_last_error(&status), "in the background");
    assert_int_equal(status, LR_USAGE);

    assert_int_equal(setenv("LORASTER_PLUGINS", LR_TEST_PLUGINS, 1), 0);
    const struct lr_mpi_plugin *plugin = lr_plugin_mpi(NULL);
    assert_non_null(plugin);
    (void)plugin->eigen(NULL, NULL, -2);
    assert_says(lr_last_error(NULL), "of the plugin");
}

test_main("unit: parallel", cmocka_unit_test(each_index_is_met_once), cmocka_unit_test(all_threads_work),
          cmocka_unit_test(callers_may_work_in_between), cmocka_unit_test(loops_may_be_in_loops),
          cmocka_unit_test(threads_have_loops_at_a_time), cmocka_unit_test(loops_may_be_far_between),
          cmocka_unit_test(a_child_has_its_own), cmocka_unit_test(plugins_share_the_pool),
          cmocka_unit_test(errors_reach_their_callers))
