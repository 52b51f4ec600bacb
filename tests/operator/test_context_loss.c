/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators whose OpenGL context is reset during a call. Every call ends with LR_NO_DEVICE and its message, at
 * whichever query the driver reports the reset. Only the driver's answer is imitated, by replacing GLEW's function
 * pointer. tests/cli/test_driver.py tests the same with the program. */
#include "fixtures.h"

#include <GL/glew.h>

/* Variables of the file, because the replaced function has no other state. */
static int queries, lost_at;

static GLenum GLAPIENTRY answer_reset(void)
{
    return queries++ < lost_at ? GL_NO_ERROR : GL_INNOCENT_CONTEXT_RESET;
}

struct loss {
    const char *backend;
    struct fixture fixture;
    struct test_log log;
    lr_operator_params params;
    float *image, *data;
    int rows; /* delivered */
};

static lr_status count_row(void *user, const lr_row *row)
{
    ((struct loss *)user)->rows++;
    return LR_OK;
}

enum work { WORK_FORWARD, WORK_BACK, WORK_ROWS, NUM_WORKS };

static lr_status do_work(struct loss *loss, lr_operator *op, enum work work)
{
    const lr_row_sink sink = {count_row, loss};
    switch (work) {
    case WORK_FORWARD: return array_forward(op, loss->image, loss->data);
    case WORK_BACK: return array_back(op, loss->data, loss->image);
    default: loss->rows = 0; return lr_operator_rows(op, 0, lr_grid_num_voxels(&loss->fixture.grid), &sink);
    }
}

/* Creates an operator. Its driver reports no reset until lost_at is set. The first context fills GLEW's table, which
 * serves all others. */
static lr_operator *open_operator(struct loss *loss)
{
    test_log_init(&loss->log);
    lost_at = INT32_MAX;
    lr_operator *op = fixture_operator(&loss->params);
    queries = 0;
    glGetGraphicsResetStatus = answer_reset;
    return op;
}

static void expect_loss(struct loss *loss, lr_operator *op, enum work work)
{
    loss->log.status = LR_OK;
    assert_ints(do_work(loss, op, work), LR_NO_DEVICE, loss->log.status, LR_NO_DEVICE);
    assert_says(loss->log.error, "run again");
}

static void lose_at_each_query(struct loss *loss, enum work work)
{
    lr_operator *op = open_operator(loss);
    assert_ok(do_work(loss, op, work));
    lr_operator_destroy(op);
    const int total = queries;
    const int64_t num_voxels = lr_grid_num_voxels(&loss->fixture.grid);
    print_message("%s, work %d: %d questions\n", loss->backend, (int)work, total);
    assert_true(total > 0);
    const int step = total > 8 ? total / 8 : 1;
    for (int at = 0; at < total; at += step) {
        op = open_operator(loss);
        lost_at = at;
        expect_loss(loss, op, work);
        assert_true(work != WORK_ROWS || loss->rows < num_voxels);
        expect_loss(loss, op, (enum work)((work + 1) % NUM_WORKS)); /* nothing works afterwards */
        lr_operator_destroy(op);
    }
}

static void test_loss_in_each_work(void **state)
{
    struct loss *loss = *state;
    for (int work = 0; work < NUM_WORKS; work++) lose_at_each_query(loss, (enum work)work);
    lr_operator *op = open_operator(loss); /* a new operator works again */
    assert_non_null(op);
    assert_ok(do_work(loss, op, WORK_FORWARD));
    lr_operator_destroy(op);
}

/* A matrix that is to be stored is computed at creation. */
static void test_loss_at_creation(void **state)
{
    struct loss *loss = *state;
    loss->params.store = LR_STORE_YES;
    lr_operator_destroy(open_operator(loss)); /* fills GLEW's table */
    queries = 0;
    lr_operator_destroy(lr_operator_create(&loss->params));
    const int total = queries;
    print_message("%s, creation: %d questions\n", loss->backend, total);
    assert_true(total > 0);
    const int step = total > 8 ? total / 8 : 1;
    for (int at = 0; at < total; at += step) {
        test_log_init(&loss->log);
        queries = 0;
        lost_at = at;
        assert_null(lr_operator_create(&loss->params));
        assert_int_equal(loss->log.status, LR_NO_DEVICE);
        assert_says(loss->log.error, "run again");
    }
    loss->params.store = LR_STORE_NO;
}

static void begin(struct loss *loss, const char *backend)
{
    *loss = (struct loss){.backend = backend};
    fixture_init(&loss->fixture, FIXTURE_RING);
    loss->params = fixture_params(&loss->fixture, backend, &loss->log.log);
    loss->params.mode = LR_MODE_SAMPLED;
    const int64_t num_voxels = lr_grid_num_voxels(&loss->fixture.grid);
    loss->image = kept_equal_floats(num_voxels, 1.0f);
    loss->data = kept_floats(loss->fixture.lors->count);
}

int main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "compute";
    if (!fixture_backend_is_usable(backend)) return 77;
    struct loss loss;
    begin(&loss, backend);
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_loss_in_each_work, &loss),
                                       cmocka_unit_test_prestate(test_loss_at_creation, &loss)};
    const int failed = cmocka_run_group_tests_name(backend, tests, NULL, NULL);
    fixture_finish(&loss.fixture);
    return failed;
}
