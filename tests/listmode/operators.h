/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Operators of list mode, created by the public interface. */
#ifndef LR_TEST_LISTMODE_OPERATORS_H
#define LR_TEST_LISTMODE_OPERATORS_H

#include "common/bindings.h"
#include "numbers.h"

#include <lr/listmode.h>
#include <lr/recon.h>

static struct test_log test_log;

/* Ten modules of 4 x 3 crystals. */
static inline lr_scanner *decagon_by(const lr_coincidence *rules)
{
    static const int crystals[2] = {4, 3};
    const lr_ring ring = {.radius_mm = 60,
                          .modules = 10,
                          .block_crystals = {&crystals[0], &crystals[1]},
                          .pitch_mm = {5, 5},
                          .face_mm = {5, 5},
                          .depth_mm = 10};
    return lr_scanner_create_ring(&(lr_scanner_params){.name = "decagon", .coincidence = *rules}, &ring);
}

static inline lr_scanner *decagon(void)
{
    return decagon_by(&(lr_coincidence){.min_module_difference = 3});
}

/* params->log: test_log */
static inline lr_operator *open_operator(const lr_listmode_params *params)
{
    test_log_init(&test_log);
    lr_operator *op = lr_listmode_create(params);
    if (op == NULL) fail_msg("%s", test_log.error);
    return op;
}

/* Projects all events, or a part of them. */
static inline void forward(lr_operator *op, const lr_selection *part, const double *image, double *values)
{
    const lr_operator_info *info = lr_operator_get_info(op);
    const lr_vector from = lr_vector_of_doubles(image, info->num_voxels);
    lr_vector to = lr_vector_of_doubles(values, lr_selection_count(info->lors, part));
    if (lr_operator_forward(op, part, &from, &to) != LR_OK) fail_msg("%s", test_log.error);
}

static inline void back(lr_operator *op, const double *values, double *image)
{
    const lr_operator_info *info = lr_operator_get_info(op);
    const lr_vector from = lr_vector_of_doubles(values, info->num_lors);
    lr_vector to = lr_vector_of_doubles(image, info->num_voxels);
    if (lr_operator_back(op, NULL, &from, &to) != LR_OK) fail_msg("%s", test_log.error);
}

/* A reconstruction of data at the operator's place to an image there, to which nothing crosses: sensitivities, of which
 * that of a scanner's events has been made before, stay there, and sums alone come to the host. */
static inline void reconstruct_in_place(lr_operator *op, const lr_recon_params *given, double *image)
{
    enum { MOST_SUMS = 128 };
    lr_place *place = lr_operator_place(op);
    const lr_vector_params data_params = {.place = place, .count = given->data->count};
    const lr_vector_params image_params = {.place = place, .count = lr_operator_get_info(op)->num_voxels};
    lr_vector data, there, host = lr_vector_of_doubles(image, image_params.count);
    assert_int_equal(lr_vector_create(&data_params, &data), LR_OK);
    assert_int_equal(lr_vector_create(&image_params, &there), LR_OK);
    assert_int_equal(lr_vector_copy(given->data, &data), LR_OK);
    lr_recon_params params = *given;
    params.op = op;
    params.data = &data;
    params.log = &test_log.log;
    const lr_traffic before = lr_place_get_info(place).traffic;
    if (lr_recon(&params, &there) != LR_OK) fail_msg("%s", test_log.error);
    const lr_traffic after = lr_place_get_info(place).traffic;
    const int64_t sums_bytes = LR_VECTOR_NUM_SUMS * (int64_t)sizeof(double);
    assert_int_equal(after.to_device - before.to_device, 0);
    assert_int_equal((after.to_host - before.to_host) % sums_bytes, 0);
    assert_true(after.to_host - before.to_host <= MOST_SUMS * sums_bytes);
    assert_int_equal(lr_vector_copy(&there, &host), LR_OK);
    lr_vector_destroy(&there);
    lr_vector_destroy(&data);
}

/* An event of a LOR, with its crystals in either order. */
static inline lr_event event_of(const lr_lors *lors, int64_t number, bool turned)
{
    lr_event event = {.weight = 1};
    int32_t crystals[2];
    lr_lors_crystals(lors, number, crystals);
    event.crystals[0] = crystals[turned];
    event.crystals[1] = crystals[!turned];
    return event;
}

/* Returns true, and prints the reason, if this machine has no device for the backend. */
static inline bool lacks_device(const char *name)
{
    test_log_init(&test_log);
    if (strcmp(name, "cuda") != 0) return false;
    lr_place *place = lr_place_open(&(lr_place_params){.kind = LR_PLACE_CUDA, .log = &test_log.log});
    if (place == NULL) print_message("skipped: %s\n", test_log.error);
    lr_place_close(place);
    return place == NULL;
}

#endif
