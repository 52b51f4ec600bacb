/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Measured profiles across a line of response, as YAML (docs/formats/histo-images.md). */
#include "base/log.h"
#include "base/mem.h"
#include "io/files/yaml.h"

#include <lr/direct.h>

enum { MOST_PROFILES = 4096, MOST_VALUES = 65536 };

struct reading {
    const struct lr_yaml *yaml;
    lr_radial_profiles *profiles;
    struct fy_node *distances, *distances_key, *rows, *rows_key;
};

static lr_status read_number(const struct reading *at, struct fy_node *node, struct fy_node *key, double *value)
{
    const struct lr_yaml_field field = {"a number", NULL, LR_YAML_NUMBER, true, value, NULL};
    return lr_yaml_read_value(at->yaml, &field, node, key);
}

/* Number of items in a list, or 0, logged. */
static int count_items(const struct reading *at, struct fy_node *node, struct fy_node *key, int most)
{
    const int count = node && fy_node_is_sequence(node) ? fy_node_sequence_item_count(node) : 0;
    if (count < 1 || count > most) {
        lr_yaml_error(at->yaml, node ? node : key, "a list of 1 to %d numbers is needed here", most);
        return 0;
    }
    return count;
}

static lr_status read_list(const struct reading *at, struct fy_node *node, struct fy_node *key, double *values)
{
    const int count = fy_node_sequence_item_count(node);
    void *iterator = NULL;
    for (int k = 0; k < count; k++) LR_TRY(read_number(at, fy_node_sequence_iterate(node, &iterator), key, &values[k]));
    return LR_OK;
}

static lr_status read_distances(const struct reading *at)
{
    lr_radial_profiles *profiles = at->profiles;
    profiles->num_distances = count_items(at, at->distances, at->distances_key, MOST_PROFILES);
    if (profiles->num_distances == 0) return LR_BAD_INPUT;
    profiles->distance_mm =
        lr_alloc(profiles->num_distances, sizeof(double), "measured profiles", lr_yaml_log(at->yaml));
    return profiles->distance_mm == NULL ? LR_FAILED
                                         : read_list(at, at->distances, at->distances_key, profiles->distance_mm);
}

static lr_status read_row(const struct reading *at, struct fy_node *row, int d)
{
    lr_radial_profiles *profiles = at->profiles;
    const int count = count_items(at, row, at->rows_key, MOST_VALUES);
    if (count == 0) return LR_BAD_INPUT;
    if (d == 0) {
        profiles->num_offsets = count;
        profiles->values = lr_alloc((int64_t)profiles->num_distances * count, sizeof(double), "measured profiles",
                                    lr_yaml_log(at->yaml));
    }
    if (profiles->values == NULL) return LR_FAILED;
    if (count != profiles->num_offsets) {
        return lr_yaml_error(at->yaml, row, "this profile has %d values and the first one %d", count,
                             profiles->num_offsets);
    }
    return read_list(at, row, at->rows_key, profiles->values + (int64_t)d * count);
}

static lr_status read_profiles(const struct lr_yaml *yaml, lr_radial_profiles *profiles)
{
    struct reading at = {.yaml = yaml, .profiles = profiles};
    const struct lr_yaml_field fields[] = {
        {"distance_mm", NULL, LR_YAML_NODE, true, &at.distances, &at.distances_key},
        {"first_offset_mm", NULL, LR_YAML_NUMBER, true, &profiles->first_offset_mm, NULL},
        {"offset_step_mm", NULL, LR_YAML_POSITIVE, true, &profiles->offset_step_mm, NULL},
        {"profiles", NULL, LR_YAML_NODE, true, &at.rows, &at.rows_key},
    };
    const struct lr_yaml_mapping mapping = {lr_yaml_root(yaml), NULL, "measured profiles"};
    LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, sizeof(fields) / sizeof(fields[0])));
    LR_TRY(read_distances(&at));
    const bool is_list = at.rows != NULL && fy_node_is_sequence(at.rows);
    const int count = is_list ? fy_node_sequence_item_count(at.rows) : 0;
    void *iterator = NULL;
    if (count != at.profiles->num_distances) {
        return lr_yaml_error(at.yaml, at.rows_key, "'profiles' must list one profile for each of the %d distances",
                             at.profiles->num_distances);
    }
    for (int d = 0; d < count; d++) LR_TRY(read_row(&at, fy_node_sequence_iterate(at.rows, &iterator), d));
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
