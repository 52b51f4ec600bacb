/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Pictures of scanners with findings: suspicious parts are red, and nothing else is. */
#include "pictures.h"

enum { VIEW_BOTTOM = 560 }; /* lower end of the views; findings are written below */

/* Number of red pixels in the left view, and their centre. */
static int count_red(const lr_picture *picture, double centre[2])
{
    int count = 0;
    centre[0] = centre[1] = 0;
    for (int y = 0; y < VIEW_BOTTOM; y++) {
        for (int x = 0; x < picture->size[0] / 2; x++) {
            const uint8_t *rgb = &picture->rgb[3 * (y * picture->size[0] + x)];
            if (rgb[0] > 150 && rgb[1] < 80 && rgb[2] < 80) {
                count++;
                centre[0] += x;
                centre[1] += y;
            }
        }
    }
    centre[0] /= count > 0 ? count : 1;
    centre[1] /= count > 0 ? count : 1;
    return count;
}

static lr_picture *draw(lr_scanner_draft *draft, const lr_grid *grid, int *suspects)
{
    struct test_log log = TEST_LOG(log);
    lr_diagnosis *diagnosis = non_null(lr_scanner_examine(draft, grid, &log.log));
    *suspects = diagnosis->num_suspects;
    const lr_diagnosis_params params = {.draft = draft, .diagnosis = diagnosis, .grid = grid, .log = &log.log};
    lr_picture *picture = lr_picture_diagnosis(&params);
    if (picture == NULL) fail_msg("%s", log.error);
    lr_diagnosis_destroy(diagnosis);
    return keep_picture(picture);
}

static void a_sound_scanner_has_no_red(void **state)
{
    for (const char *const *name = lr_scanner_presets(); *name != NULL; name++) {
        lr_scanner_draft *draft = lr_scanner_draft_read(*name, NULL);
        int suspects;
        double centre[2];
        lr_picture *picture = draw(draft, NULL, &suspects);
        assert_ints(suspects, 0, count_red(picture, centre), 0);
        lr_scanner_draft_destroy(draft);
    }
}

/* A module at +x is moved outwards: red appears at the right of the left view. */
static void what_is_suspected_is_red(void **state)
{
    const int size[3] = {20, 20, 10};
    const double voxel_mm[3] = {2, 2, 2};
    const lr_grid grid = lr_grid_centred(size, voxel_mm);
    lr_scanner *scanner = keep(lr_scanner_read("siemens-inveon", NULL));
    scanner->modules[0].centre_mm[0] += 12;
    lr_scanner_draft *draft = lr_scanner_draft_create(scanner, NULL);
    int suspects;
    double centre[2];
    lr_picture *picture = draw(draft, &grid, &suspects);
    assert_int_equal(suspects, 1);
    assert_all(count_red(picture, centre) > 50, centre[0] > 0.75 * picture->size[0] / 2);
    assert_true(fabs(centre[1] - VIEW_BOTTOM / 2.0) < 60);
    lr_scanner_draft_destroy(draft);
}

test_main("pictures of diagnoses", CASE(a_sound_scanner_has_no_red), CASE(what_is_suspected_is_red))
