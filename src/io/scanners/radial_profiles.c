/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Measured profiles across a line of response, as YAML (docs/formats/histo-images.md). */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/yaml.h"

#include <lr/direct.h>

enum { MOST_PROFILES = 4096, MOST_VALUES = 65536 };

/* Number of items in a list, or 0, logged. */
static int count_items(const struct lr_yaml *yaml, struct fy_node *list, struct fy_node *key, int most)
{
    const int count = list && fy_node_is_sequence(list) ? fy_node_sequence_item_count(list) : 0;
    if (count < 1 || count > most) {
        lr_yaml_error(yaml, list ? list : key, "a list of 1 to %d numbers is needed here", most);
        return 0;
    }
    return count;
}

static lr_status read_list(const struct lr_yaml *yaml, struct fy_node *list, struct fy_node *key, double *values)
{
    const int count = fy_node_sequence_item_count(list);
    void *iterator = NULL;
    for (int k = 0; k < count; k++) {
        const struct lr_yaml_field field = {"a number", NULL, LR_YAML_NUMBER, true, &values[k], NULL};
        LR_TRY(lr_yaml_read_value(yaml, &field, fy_node_sequence_iterate(list, &iterator), key));
    }
    return LR_OK;
}

static lr_status read_profiles(const struct lr_yaml *yaml, lr_radial_profiles *profiles)
{
    struct fy_node *distances = NULL, *distances_key = NULL, *rows = NULL, *rows_key = NULL;
    const struct lr_yaml_field fields[] = {
        {"distance_mm", NULL, LR_YAML_NODE, true, &distances, &distances_key},
        {"first_offset_mm", NULL, LR_YAML_NUMBER, true, &profiles->first_offset_mm, NULL},
        {"offset_step_mm", NULL, LR_YAML_POSITIVE, true, &profiles->offset_step_mm, NULL},
        {"profiles", NULL, LR_YAML_NODE, true, &rows, &rows_key},
    };
    const struct lr_yaml_mapping mapping = {lr_yaml_root(yaml), NULL, "measured profiles"};
    LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, sizeof(fields) / sizeof(fields[0])));

    const lr_log *log = lr_yaml_log(yaml);
    const int num = count_items(yaml, distances, distances_key, MOST_PROFILES);
    LR_TRY(num > 0 ? LR_OK : LR_BAD_INPUT);
    profiles->num_distances = num;
    profiles->distance_mm = lr_alloc(num, sizeof(double), "measured profiles", log);
    LR_TRY(profiles->distance_mm != NULL ? LR_OK : LR_FAILED);
    LR_TRY(read_list(yaml, distances, distances_key, profiles->distance_mm));
    if (rows == NULL || !fy_node_is_sequence(rows) || fy_node_sequence_item_count(rows) != num)
        return lr_yaml_error(yaml, rows_key, "'profiles' must list one profile for each of the %d distances", num);
    void *iterator = NULL;
    for (int d = 0; d < num; d++) {
        struct fy_node *row = fy_node_sequence_iterate(rows, &iterator);
        const int count = count_items(yaml, row, rows_key, MOST_VALUES);
        LR_TRY(count > 0 ? LR_OK : LR_BAD_INPUT);
        if (d == 0) {
            profiles->num_offsets = count;
            profiles->values = lr_alloc((int64_t)num * count, sizeof(double), "measured profiles", log);
        }
        LR_TRY(profiles->values != NULL ? LR_OK : LR_FAILED);
        if (count != profiles->num_offsets) {
            return lr_yaml_error(yaml, row, "this profile has %d values and the first one %d", count,
                                 profiles->num_offsets);
        }
        LR_TRY(read_list(yaml, row, rows_key, profiles->values + (int64_t)d * count));
    }
    return LR_OK;
}

lr_status lr_radial_profiles_read(const char *path, lr_radial_profiles *profiles, const lr_log *log)
{
    *profiles = (lr_radial_profiles){0};
    struct lr_yaml *yaml = lr_yaml_read(path, log);
    const lr_status status = yaml != NULL ? read_profiles(yaml, profiles) : LR_BAD_INPUT;
    lr_yaml_destroy(yaml);
    if (status != LR_OK) lr_radial_profiles_finish(profiles);
    return status;
}
