/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The contract between direct/compute/ and the functions of a device, tested without a device. While the functions
 * work on images, these are lent to them and lie in the host's memory. OpenGL then refuses to use an image that it
 * has not asked back, and reads old values if it asks for the wrong one. */
#include "turns.h"

#include "base/log.h"
#include "cases.h"
#include "cuda_interop/direct/plans.h"
#include "direct/compute/direct.h"
#include "on_cpu.h"

/* A buffer that is lent to the functions. */
struct held {
    struct gl_loan loan; /* must be the first member */
    float *texels;       /* owned */
};

struct fake {
    struct lr_direct_compute *compute;
    int taken, given; /* number of objects up to now */
    int laps;
};

static struct fake fake;

/* --- who has what --- */

static void end_held(struct gl_loan *loan)
{
    struct held *held = (struct held *)loan;
    free(held->texels);
    free(held);
}

/* The texels of an image, which remains lent. */
static float4 *take(const struct lr_direct_image *image)
{
    struct gl_buffer *buffer = non_null(image->buffer);
    if (buffer->loan == NULL) {
        struct held *held = calloc(1, sizeof(*held));
        held->loan.end = end_held;
        held->texels = calloc((size_t)buffer->size_bytes, 1);
        buffer->loan = &held->loan;
    }
    struct held *held = (struct held *)buffer->loan;
    if (!held->loan.is_out) {
        assert_ok(gl_context_make_current(buffer->ctx));
        assert_ok(gl_buffer_read(buffer, 0, buffer->size_bytes, held->texels));
        gl_context_release(buffer->ctx);
        held->loan.is_out = true;
        fake.taken++;
    }
    return (float4 *)(void *)held->texels;
}

static lr_status give_back(void *self, const struct lr_direct_image *image)
{
    struct held *held = (struct held *)image->buffer->loan;
    if (held == NULL || !held->loan.is_out) return LR_OK;
    held->loan.is_out = false;
    fake.given++;
    return gl_buffer_upload(image->buffer, 0, image->buffer->size_bytes, held->texels);
}

/* --- projections --- */

static void *read_buffer(const struct gl_buffer *buffer)
{
    void *values = malloc((size_t)buffer->size_bytes);
    assert_ok(gl_buffer_read(buffer, 0, buffer->size_bytes, values));
    return values;
}

static lr_status run(void *self, bool forward, int view, const struct lr_direct_image *source,
                     const struct lr_direct_image *target)
{
    assert_ok(gl_context_make_current(fake.compute->ctx));
    const struct lr_direct_view_tables *tables = non_null(lr_direct_open_tables(fake.compute, view));
    int32_t *offsets = read_buffer(tables->offsets);
    float *values = read_buffer(tables->values);
    uint16_t *map = malloc((size_t)gl_texture_bytes(tables->map));
    assert_ok(gl_texture_read(tables->map, NULL, map));
    gl_context_release(fake.compute->ctx);
    const lr_cuda_gather pass = {.layout = lr_cuda_layout_of(fake.compute),
                                 .values = values,
                                 .num_offsets = tables->num_offsets,
                                 .num_rows = tables->num_rows};
    const cpu_images images = {
        .source = (const float *)(const void *)take(source), .target = (float *)(void *)take(target), .map = map};
    on_cpu_gather(CPU_TEXELS, forward, pass, offsets, &images);
    free(map);
    free(values);
    free(offsets);
    return LR_OK;
}

static lr_status run_task(void *self, const lr_direct_task *task, const struct lr_direct_image *source,
                          const struct lr_direct_image *target, double *device_seconds)
{
    for (int k = 0; k < task->num_views; k++)
        LR_TRY(run(self, task->work == LR_DIRECT_WORK_FORWARD, task->views[k], source, target));
    *device_seconds = task->num_views;
    return LR_OK;
}

/* The tables of the passes, which run() reads. */
static lr_status make_tables(void *self, const lr_direct_task *task, double *device_seconds)
{
    for (int k = 0; k < task->num_views; k++) {
        lr_direct_drop_tables(fake.compute, task->views[k]);
        assert_non_null(lr_direct_open_tables(fake.compute, task->views[k]));
    }
    *device_seconds = task->num_views;
    return LR_OK;
}

/* --- updates --- */

static lr_cuda_image image_of(const struct lr_direct_image *from)
{
    lr_cuda_image image = {0};
    if (from != NULL && lr_direct_image_exists(from)) {
        const lr_cuda_layout layout = lr_cuda_layout_of(fake.compute);
        image.texels = take(from);
        image.extent[0] = from->has_margins ? layout.extent[0] : layout.quads;
        image.extent[1] = from->has_margins ? layout.extent[1] : layout.size[0];
        for (int k = 0; from->has_margins && k < 3; k++) image.margin[k] = layout.margin[k];
    }
    return image;
}

static lr_status discrepancy(void *self, int what, const struct lr_direct_view_data *data,
                             const struct lr_direct_image *histo)
{
    on_cpu_discrepancy(filled(lr_cuda_discrepancy, .layout = lr_cuda_layout_of(fake.compute), .what = what,
                              .histo = image_of(histo), .counts = image_of(&data->counts),
                              .additive = image_of(&data->additive), .factors = image_of(&data->factors)));
    return LR_OK;
}

static lr_status change(void *self, const struct lr_direct_change *change, const struct lr_direct_image *image)
{
    on_cpu_change(filled(lr_cuda_change, .layout = lr_cuda_layout_of(fake.compute), .what = change->what,
                         .lambda = change->lambda, .image = image_of(image), .by = image_of(change->by),
                         .sensitivity = image_of(change->sensitivity)));
    return LR_OK;
}

/* --- the rest --- */

static void margins(const struct lr_direct_shape *shape, int margin[3]) {}

static void *create(struct lr_direct_compute *compute)
{
    fake = (struct fake){.compute = compute};
    return &fake;
}

static void mark_lap(void *self, bool ends)
{
    ((struct fake *)self)->laps += ends;
}

static double read_laps(void *self)
{
    const int laps = ((struct fake *)self)->laps;
    ((struct fake *)self)->laps = 0;
    return laps;
}

static void destroy(void *self) {}

static const struct lr_direct_functions functions = {.name = "fake",
                                                     .margins = margins,
                                                     .create = create,
                                                     .run = run,
                                                     .time = run_task,
                                                     .tables = make_tables,
                                                     .discrepancy = discrepancy,
                                                     .change = change,
                                                     .give_back = give_back,
                                                     .mark_lap = mark_lap,
                                                     .read_laps = read_laps,
                                                     .destroy = destroy};

/* --- tests --- */

static lr_operator *make_cpu(const lr_grid *grid)
{
    return keep(lr_direct_create(&filled(lr_direct_params, .grid = grid, .views = case_views, .num_views = TURN_VIEWS,
                                         .kernel = {.resolution = case_resolution(2)}, .backend = "cpu")));
}

/* The first operator uses the functions above in place of backend cpu. */
static struct pair *make_pair(void)
{
    const lr_grid grid = case_grid();
    lr_operator *op = make_cpu(&grid);
    const struct lr_direct_backend_params params =
        filled(struct lr_direct_backend_params, .grid = grid, .views = op->direct->views, .num_views = TURN_VIEWS,
               .lors = &op->direct->layout, .kernel = {.resolution = case_resolution(2)}, .storage = LR_DIRECT_BUFFERS);
    op->backend.fns->destroy(op->backend.self);
    assert_ok(lr_direct_compute_create_with(&params, &functions, &op->backend));
    return kept_pair(op, make_cpu(&grid));
}

static void whoever_has_an_image_it_is_the_right_one(void **state)
{
    for (int k = 0; k < length_of(all_turns); k++) {
        struct pair *pair = make_pair();
        take_turns(pair, &all_turns[k]);
        print_message("turns %d: largest difference %.2e\n", k, pair->worst);
        assert_true(pair->worst < 1e-5);
    }
}

/* The time for tables is measured by the clock of the functions, because they make the tables. */
static void tables_are_timed_by_functions(void **state)
{
    static const int views[3] = {0, 2, 3};
    struct pair *pair = make_pair();
    lr_direct_timing timing;
    assert_int_equal(
        lr_direct_time(pair->tested,
                       &(lr_direct_task){LR_DIRECT_WORK_TABLES, views, 3, vector_of(pair->source, pair->count)},
                       &timing),
        LR_OK);
    assert_true(timing.device_s == 3);
    pair_compare_projections(pair, 2);
    assert_true(pair->worst < 1e-5);
}

static void iterate(struct pair *pair, const struct turns *turns)
{
    for (int number = 0; number < turns_blocks(turns); number++) turns_update(pair, turns, number);
}

/* Once all images are lent, an iteration moves none to or from the functions; reading the image moves only the
   image. */
static void nothing_changes_hands_within_an_iteration(void **state)
{
    for (int k = 0; k < length_of(all_turns); k++) {
        struct pair *pair = make_pair();
        take_turns(pair, &all_turns[k]);
        iterate(pair, &all_turns[k]);
        const struct fake before = fake;
        iterate(pair, &all_turns[k]);
        assert_ints(fake.taken, before.taken, fake.given, before.given);
        pair_get_image(pair, pair->found);
        iterate(pair, &all_turns[k]);
        assert_ints(fake.taken, before.taken + 1, fake.given, before.given + 1);
    }
}

static lr_vector counts_of(struct pair *pair)
{
    for (int view = 0; view < TURN_VIEWS; view++) pair_fill(pair, view, (uint64_t)view);
    return lr_vector_of_floats(pair->data[0], TURN_VIEWS * pair->count);
}

/* Reconstructs with the reference, and compares the image with pair->found. */
static void expect_reference(struct pair *pair, lr_recon_params params)
{
    params.op = pair->reference;
    params.iteration = NULL;
    assert_ok(lr_recon(&params, vector_of(pair->expected, pair->count)));
    pair_compare(pair);
    print_message("largest difference %.2e\n", pair->worst);
    assert_true(pair->worst < 1e-5);
}

/* Within an iteration, lr_recon leaves all images lent to the functions, too; it reads only the image. */
static lr_status count_hands(void *user, const lr_iteration *done)
{
    int *moved = user;
    assert_false(done->has_fit);
    assert_true(done->device_seconds == TURN_VIEWS); /* one per view on the fake clock */
    moved[done->number] = fake.taken + fake.given;
    return LR_OK;
}

static void a_reconstruction_moves_its_image_alone(void **state)
{
    static const int32_t subset_of[TURN_VIEWS] = {0, 1, 2, 3, 4};
    struct pair *pair = make_pair();
    int moved[6] = {0};
    const lr_vector data = counts_of(pair);
    lr_recon_params params = filled(lr_recon_params, .op = pair->tested, .data = &data, .iterations = 5,
                                    .subsets = TURN_VIEWS, .subset_of = subset_of, .algorithm = LR_ALGORITHM_RAMLA,
                                    .without_fit = true, .iteration = count_hands, .user = moved);
    assert_ok(lr_recon(&params, vector_of(pair->found, pair->count)));
    for (int k = 3; k <= 5; k++) /* an iteration borrows the image, and the next report returns it */
        assert_int_equal(moved[k] - moved[k - 1], 2);
    expect_reference(pair, params);
}

/* A run that reports the fit, with vectors in OpenGL's buffers. Between two iterations nothing is copied to the
 * device, although images are lent and returned, and only sums are copied to the host, neither the image nor LOR
 * values. */
static lr_status count_bytes(void *user, const lr_iteration *done)
{
    lr_traffic *traffic = user;
    assert_non_null(done->image->place);
    traffic[done->number] = lr_place_get_info(done->image->place).traffic;
    return LR_OK;
}

static void a_reconstruction_with_a_fit_stays_there(void **state)
{
    struct pair *pair = make_pair();
    lr_traffic traffic[5] = {{0}};
    const lr_vector data = counts_of(pair);
    lr_recon_params params = {
        .op = pair->tested, .data = &data, .iterations = 4, .subsets = 2, .iteration = count_bytes, .user = traffic};
    assert_ok(lr_recon(&params, vector_of(pair->found, pair->count)));
    assert_int_equal(traffic[4].to_device, traffic[1].to_device);
    assert_in_range(traffic[4].to_host - traffic[1].to_host, 1, 12 * pair->count);
    expect_reference(pair, params);
}

usable_main(fixture_backend_is_usable("compute"),
            CASES(whoever_has_an_image_it_is_the_right_one, nothing_changes_hands_within_an_iteration,
                  a_reconstruction_moves_its_image_alone, a_reconstruction_with_a_fit_stays_there,
                  tables_are_timed_by_functions))
