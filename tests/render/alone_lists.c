/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The passes correspondence/columns/rows.comp, list_forward.comp and list_back.comp, each alone: elements of points,
 * and elements of single LORs. */
#include "alone_columns.h"

/* --- elements of points --- */

/* A point as the pass reads it: two coordinates across the column and one along it, each as a float and the float's
 * rounding error. */
static struct gl_buffer *upload_points(struct alone *alone, const struct lr_columns *columns)
{
    const int axes[3] = {columns->across[0], columns->across[1], columns->axis};
    const int64_t count = alone->num_voxels * alone->per_row;
    float(*parts)[3][2] = kept(count, sizeof(*parts));
    for (int64_t n = 0; n < count; n++) {
        double point_mm[3];
        lr_rows_point(&alone->rows, n / alone->per_row, (int)(n % alone->per_row), point_mm);
        for (int k = 0; k < 3; k++) lr_split_float(point_mm[axes[k]], &parts[n][k][0], &parts[n][k][1]);
    }
    return device_buffer(count * (int64_t)sizeof(*parts), parts);
}

static struct gl_buffer *upload_pairs(struct alone *alone, const struct lr_columns *columns)
{
    return keep_object(lr_columns_upload_pairs(columns, &alone->list, 0, alone->list.num_pairs, NULL),
                       device_end_buffer);
}

static void test_columns_rows(struct alone *alone, struct lr_columns *columns)
{
    static const enum lr_columns_program programs[] = {LR_COLUMNS_ROWS, LR_COLUMNS_POINT_ROWS};
    for (int k = 0; k < 2; k++) {
        struct alone_elements elements = alone_elements_open(alone);
        /* Runs the pairs one by one, because a software renderer allows only few at once. */
        struct gl_buffer *points = upload_points(alone, columns), *pairs = upload_pairs(alone, columns);
        struct lr_columns_pass uniforms = lr_columns_uniforms(columns);
        for (int n = 0; n < 3; n++) uniforms.num_points[n] = uniforms.num_samples[n] = 1;
        uniforms.count[1] = (int32_t)elements.capacity;
        struct gl_pass pass = alone_pass(alone, lr_columns_program(columns, programs[k]), &uniforms, sizeof(uniforms),
                                         (const int[3]){elements.num_points, 1, 1});
        lr_columns_bind_scene(columns, &pass);
        pass.buffers[LR_BIND_COLUMN_PAIRS].buffer = pairs;
        pass.buffers[LR_BIND_COLUMN_POINTS].buffer = points;
        pass.buffers[LR_BIND_OUTPUT].buffer = elements.buffer;
        for (int64_t n = 0; n < alone->list.num_pairs; n++) {
            uniforms.first[0] = (int32_t)n;
            uniforms.count[0] = (int32_t)n + 1;
            alone_check(alone, gl_pass_run(alone->ctx, &pass) == LR_OK);
        }
        alone_elements_compare(alone, k == 0 ? "rows of voxels" : "rows of points", &elements, NULL);
    }
}

/* --- single LORs --- */

enum { NUM_LORS = 200 };

/* `struct Entry` of shaders/correspondence/columns/list.glsl. */
struct entry {
    uint32_t pair, number;
    float value;
    uint32_t unused;
};

/* A list of LORs on the device. */
struct list {
    struct alone *alone;
    struct lr_columns *columns;
    struct alone_values lors;
    struct entry *entries; /* [lors.count] */
    struct gl_buffer *buffer, *pairs;
};

static struct list *list_open(struct alone *alone, struct lr_columns *columns)
{
    const int64_t *offsets = alone->lors->offsets + alone->window.begin;
    struct list *list = kept(1, sizeof(*list));
    *list = (struct list){alone, columns, alone_choose_values(alone, NUM_LORS), NULL, NULL, NULL};
    list->entries = kept(list->lors.count, sizeof(*list->entries));
    uint32_t pair = 0;
    for (int k = 0; k < list->lors.count; k++) {
        const int64_t lor = list->lors.value[k] + alone->window.first_value;
        while (lor >= offsets[pair + 1]) pair++;
        list->entries[k] = (struct entry){.pair = pair, .number = (uint32_t)(lor - offsets[pair])};
    }
    list->buffer = device_buffer(list->lors.count * 16, NULL);
    list->pairs = upload_pairs(alone, columns);
    return list;
}

/* Uploads the entries and runs the pass. */
static void run_list(const struct list *list, enum lr_columns_program which, const struct gl_buffer *image)
{
    struct alone *alone = list->alone;
    struct lr_columns_pass uniforms = lr_columns_uniforms(list->columns);
    uniforms.count[0] = list->lors.count;
    struct gl_pass pass =
        alone_pass(alone, lr_columns_program(list->columns, which), &uniforms, sizeof(uniforms),
                   (const int[3]){gl_divide_up(list->lors.count, LR_GROUP_SIZE / LR_LIST_SHARE), 1, 1});
    lr_columns_bind_scene(list->columns, &pass);
    pass.buffers[LR_BIND_COLUMN_PAIRS].buffer = list->pairs;
    pass.buffers[LR_BIND_COLUMN_LIST].buffer = list->buffer;
    pass.buffers[LR_BIND_COLUMN_IMAGE].buffer = image;
    alone_check(alone, gl_buffer_upload(list->buffer, 0, list->lors.count * 16, list->entries) == LR_OK);
    alone_check(alone, gl_pass_run(alone->ctx, &pass) == LR_OK);
}

static void test_list_forward(struct alone *alone, struct lr_columns *columns)
{
    struct list *list = list_open(alone, columns);
    double *found = kept(list->lors.count * alone->num_voxels, sizeof(*found));
    struct entry *entries = kept(list->lors.count, sizeof(*entries));
    for (int64_t voxel = 0; voxel < alone->num_voxels; voxel++) {
        put_image(alone, columns, alone_one_voxel(alone, voxel));
        run_list(list, LR_COLUMNS_LIST_FORWARD, columns->image);
        alone_check(alone, gl_buffer_read(list->buffer, 0, list->lors.count * 16, entries) == LR_OK);
        for (int k = 0; k < list->lors.count; k++) found[k * alone->num_voxels + voxel] = (double)entries[k].value;
    }
    for (int k = 0; k < list->lors.count; k++)
        alone_compare_value(alone, "forward of LORs", list->lors.value[k], found + k * alone->num_voxels);
}

/* image: [num_voxels] in the grid's order, from sums in fixed point. */
static void back_of_list(const struct list *list, double *image)
{
    struct alone *alone = list->alone;
    const int64_t count = alone->num_voxels;
    double *sums = kept(count, sizeof(*sums));
    struct gl_buffer *buffer = device_buffer((count + 1) * 8, NULL);
    run_list(list, LR_COLUMNS_LIST_BACK, buffer);
    alone_read_fixed(alone, buffer, count, sums);
    for (int64_t v = 0; v < count; v++) {
        int at[3];
        voxel_at(&alone->grid, v, at);
        image[v] = sums[column_voxel(list->columns, at)];
    }
}

/* Back-projects some LORs one by one, with positive and negative values, and all LORs at once. */
static void test_list_back(struct alone *alone, struct lr_columns *columns)
{
    struct list *list = list_open(alone, columns);
    double *image = kept(alone->num_voxels, sizeof(*image));
    float *values = kept(alone->num_values, sizeof(*values));
    for (int k = 0; k < list->lors.count; k += 8) {
        const double value = k % 16 == 0 ? 0.75 : -0.75;
        list->entries[k].value = (float)value;
        back_of_list(list, image);
        list->entries[k].value = 0;
        for (int64_t v = 0; v < alone->num_voxels; v++) image[v] /= value;
        alone_compare_value(alone, "back of LORs", list->lors.value[k], image);
    }
    for (int k = 0; k < list->lors.count; k++)
        values[list->lors.value[k]] = list->entries[k].value = (float)random_between(&alone->state, 0, 1);
    back_of_list(list, image);
    alone_compare_sums(alone, "back of LORs", values, image);
}

/* --- cases --- */

static const struct alone_case cases[] = {
    {.scanner = "lying", .samples = {1, 2, 2}},
    {.scanner = "upside down", .size = {16, 17, 1}}, /* columns of a tube outnumber the threads of a LOR */
    {.scanner = "ring of 8", .off_centre = true, .size = {2, 2, 3}},
    {.scanner = "flipped", .near = true},
    {.scanner = "ruled ring", .pairs = 20},
    {.scanner = "ge-explore-vista-dr", .off_centre = true, .size = {2, 2, 3}, .pairs = 3},
    {.scanner = "ruled ring", .rays = 2, .off_centre = true, .pairs = 30},
    {.scanner = "upside down", .rays = 2, .samples = {2, 1, 3}}};

typedef void check_columns(struct alone *alone, struct lr_columns *columns);

static void each_case(void **state)
{
    check_columns *check = (check_columns *)given_check(state);
    for (int k = 0; k < length_of(cases); k++) {
        if (cases[k].rays != 0 && check == test_columns_rows) continue;
        struct alone *alone = alone_open(&cases[k]);
        check(alone, make_columns(alone));
        destroy_kept(NULL);
    }
}

stage_main("render_alone_lists", CASE_OF(each_case, test_columns_rows), CASE_OF(each_case, test_list_forward),
           CASE_OF(each_case, test_list_back))
