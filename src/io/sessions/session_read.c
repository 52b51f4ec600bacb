/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "io/sessions/session.h"

#include "base/log.h"
#include "io/files/c_locale.h"
#include "io/files/yaml.h"
#include "io/sessions/session_keys.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUM_FIELDS(fields) ((int)(sizeof(fields) / sizeof((fields)[0])))

/* A value of the file with the key that carries it. */
struct entry {
    struct fy_node *key, *value;
};

/* --- pieces --- */

/* A list of three whole numbers from `least` on. */
static lr_status take_wholes(const struct lr_yaml *yaml, const struct lr_yaml_field *field,
                             int least, int wholes[3])
{
    const double *numbers = field->value;
    for (int k = 0; k < 3; k++) {
        if (numbers[k] != floor(numbers[k]) || numbers[k] < least || numbers[k] > INT_MAX) {
            return lr_yaml_error(yaml, *field->at,
                                 "'%s[%d]' must be a whole number from %d to %d, found %.10g",
                                 field->key, k, least, INT_MAX, numbers[k]);
        }
        wholes[k] = (int)numbers[k];
    }
    return LR_OK;
}

/* One of some words; frees the text. */
static lr_status take_word(const struct lr_yaml *yaml, const struct lr_yaml_field *field,
                           const char *const *words, int *index)
{
    char **text = field->value;
    char known[128] = "";
    if (*text == NULL) {
        return LR_OK;
    }
    int found = -1;
    for (int k = 0; words[k] != NULL; k++) {
        const size_t used = strlen(known);
        snprintf(known + used, sizeof(known) - used, "%s%s", k ? ", " : "", words[k]);
        found = strcmp(words[k], *text) == 0 ? k : found;
    }
    const lr_status status =
        found >= 0 ? LR_OK
                   : lr_yaml_error(yaml, *field->at, "'%s' must be one of %s, found '%.40s'",
                                   field->key, known, *text);
    *index = found >= 0 ? found : *index;
    free(*text);
    *text = NULL;
    return status;
}

/* --- parts --- */

static lr_status read_grid(const struct lr_yaml *yaml, const struct entry *entry, lr_grid *grid)
{
    double size[3] = {0};
    struct fy_node *size_at = NULL, *voxel_at = NULL;
    const struct lr_yaml_field fields[] = {
        {"size", NULL, LR_YAML_VECTOR, true, size, &size_at},
        {"voxel_mm", NULL, LR_YAML_VECTOR, true, grid->voxel_mm, &voxel_at},
        {"origin_mm", NULL, LR_YAML_VECTOR, true, grid->origin_mm, NULL},
    };
    const struct lr_yaml_mapping mapping = {entry->value, entry->key, "a grid"};
    if (entry->key == NULL) {
        return LR_OK;
    }
    LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields)));
    LR_TRY(take_wholes(yaml, &fields[0], 1, grid->size));
    for (int k = 0; k < 3; k++) {
        if (!(grid->voxel_mm[k] > 0)) {
            return lr_yaml_error(yaml, voxel_at, "'voxel_mm[%d]' must be greater than 0", k);
        }
    }
    return lr_grid_check(grid, NULL) == LR_OK
               ? LR_OK
               : lr_yaml_error(yaml, size_at, "the grid has more than 2147483648 voxels");
}

static lr_status read_camera(const struct lr_yaml *yaml, const struct entry *entry,
                             struct lr_view_session *session)
{
    struct fy_node *angle_at = NULL;
    const struct lr_yaml_field fields[] = {
        {"eye_mm", NULL, LR_YAML_VECTOR, true, session->eye_mm, NULL},
        {"target_mm", NULL, LR_YAML_VECTOR, true, session->target_mm, NULL},
        {"up", NULL, LR_YAML_VECTOR, true, session->up, NULL},
        {"view_angle_deg", NULL, LR_YAML_NOT_NEGATIVE, false, &session->view_angle_deg, &angle_at},
    };
    const struct lr_yaml_mapping mapping = {entry->value, entry->key, "a camera"};
    session->has_camera = entry->key != NULL;
    if (entry->key == NULL) {
        return LR_OK;
    }
    LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields)));
    return session->view_angle_deg < 180
               ? LR_OK
               : lr_yaml_error(yaml, angle_at, "'view_angle_deg' must be less than 180");
}

/* All primaries where none is named. */
static lr_status read_voxel(const struct lr_yaml *yaml, const struct entry *entry,
                            struct lr_view_session *session)
{
    char *matrix = NULL, *absorption = NULL, *backend = NULL;
    struct fy_node *primary_at = NULL, *matrix_at = NULL, *absorption_at = NULL, *backend_at = NULL;
    const struct lr_yaml_field fields[] = {
        {"point_mm", NULL, LR_YAML_VECTOR, true, session->point_mm, NULL},
        {"primary", NULL, LR_YAML_INDEX, false, &session->primary, &primary_at},
        {"matrix", NULL, LR_YAML_TEXT, false, &matrix, &matrix_at},
        {"rays", NULL, LR_YAML_COUNT, false, &session->rays, NULL},
        {"samples", NULL, LR_YAML_COUNT, false, &session->samples, NULL},
        {"mu_steps", NULL, LR_YAML_COUNT, false, &session->mu_steps, NULL},
        {"absorption", NULL, LR_YAML_TEXT, false, &absorption, &absorption_at},
        {"backend", NULL, LR_YAML_TEXT, false, &backend, &backend_at},
    };
    const struct lr_yaml_mapping mapping = {entry->value, entry->key, "a voxel"};
    if (entry->key == NULL) {
        return LR_OK;
    }
    int mode = LR_MODE_AUTO, without = 0;
    lr_status status = lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields));
    if (status == LR_OK) {
        status = take_word(yaml, &fields[2], lr_session_matrix_modes, &mode);
    }
    if (status == LR_OK) {
        status = take_word(yaml, &fields[6], lr_session_absorptions, &without);
    }
    if (status == LR_OK) {
        status = take_word(yaml, &fields[7], lr_session_backends, &session->backend);
    }
    free(matrix);
    free(absorption);
    free(backend);
    session->has_voxel = true;
    session->all_primaries = primary_at == NULL;
    session->matrix_mode = (lr_mode)mode;
    session->without_mu = without != 0;
    return status;
}

static lr_status read_lor(const struct lr_yaml *yaml, const struct entry *entry,
                          struct lr_view_session *session)
{
    double ends[2][3] = {{0}};
    struct fy_node *at[2] = {NULL};
    const struct lr_yaml_field fields[] = {
        {"first", NULL, LR_YAML_VECTOR, true, ends[0], &at[0]},
        {"second", NULL, LR_YAML_VECTOR, true, ends[1], &at[1]},
    };
    const struct lr_yaml_mapping mapping = {entry->value, entry->key, "a LOR"};
    session->has_lor = entry->key != NULL;
    if (entry->key == NULL) {
        return LR_OK;
    }
    LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields)));
    LR_TRY(take_wholes(yaml, &fields[0], 0, session->lor));
    return take_wholes(yaml, &fields[1], 0, session->lor + 3);
}

static lr_status read_range(const struct lr_yaml *yaml, struct fy_node *node, struct fy_node *at,
                            struct lr_session_range *range)
{
    char *name = NULL;
    struct fy_node *name_at = NULL, *high_at = NULL;
    const struct lr_yaml_field fields[] = {
        {"name", NULL, LR_YAML_TEXT, true, &name, &name_at},
        {"low", NULL, LR_YAML_NUMBER, true, &range->low, NULL},
        {"high", NULL, LR_YAML_NUMBER, true, &range->high, &high_at},
    };
    const struct lr_yaml_mapping mapping = {node, at, "a range"};
    lr_status status = lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields));
    if (status == LR_OK && strlen(name) >= LR_SESSION_NAME) {
        status =
            lr_yaml_error(yaml, name_at, "'name' must have at most %d bytes", LR_SESSION_NAME - 1);
    }
    if (status == LR_OK && !(range->low < range->high)) {
        status = lr_yaml_error(yaml, high_at, "'high' must be greater than 'low'");
    }
    if (status == LR_OK) {
        snprintf(range->name, sizeof(range->name), "%s", name);
    }
    free(name);
    return status;
}

static lr_status read_ranges(const struct lr_yaml *yaml, const struct entry *entry,
                             struct lr_view_session *session)
{
    void *iterator = NULL;
    struct fy_node *item;
    if (entry->key == NULL) {
        return LR_OK;
    }
    if (entry->value == NULL || !fy_node_is_sequence(entry->value)) {
        return lr_yaml_error(yaml, entry->key, "'ranges' must be a list of {name, low, high}");
    }
    while ((item = fy_node_sequence_iterate(entry->value, &iterator)) != NULL) {
        if (session->num_ranges == LR_SESSION_RANGES) {
            return lr_yaml_error(yaml, entry->key, "'ranges' has more than %d entries",
                                 LR_SESSION_RANGES);
        }
        LR_TRY(read_range(yaml, item, entry->key, &session->ranges[session->num_ranges]));
        session->num_ranges++;
    }
    return LR_OK;
}

static lr_status read_shown(const struct lr_yaml *yaml, const struct entry *entry,
                            struct lr_view_session *session)
{
    char *image = NULL, *words[3] = {NULL, NULL, NULL};
    double slices[3] = {0};
    struct fy_node *image_at = NULL, *slices_at = NULL, *words_at[3] = {NULL, NULL, NULL};
    const struct lr_yaml_field fields[] = {
        {"image", NULL, LR_YAML_TEXT, false, &image, &image_at},
        {"slices", NULL, LR_YAML_VECTOR, true, slices, &slices_at},
        {"slices_mm", NULL, LR_YAML_VECTOR, true, session->slices_mm, NULL},
        {"volume", NULL, LR_YAML_TEXT, false, &words[0], &words_at[0]},
        {"crystals", NULL, LR_YAML_TEXT, false, &words[1], &words_at[1]},
        {"lors", NULL, LR_YAML_TEXT, false, &words[2], &words_at[2]},
    };
    const struct lr_yaml_mapping mapping = {entry->value, entry->key, "what is shown"};
    int shown[3] = {0, 1, 1}, wholes[3] = {0};
    if (entry->key == NULL) {
        return LR_OK;
    }
    session->has_shown = true;
    lr_status status = lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields));
    for (int k = 0; k < 3 && status == LR_OK; k++) {
        status = take_word(yaml, &fields[3 + k], lr_session_showings, &shown[k]);
    }
    if (status == LR_OK) {
        status = take_wholes(yaml, &fields[1], 0, wholes);
    }
    if (status == LR_OK && image != NULL && strlen(image) >= LR_SESSION_NAME) {
        status = lr_yaml_error(yaml, image_at, "'image' must have at most %d bytes",
                               LR_SESSION_NAME - 1);
    }
    if (status == LR_OK && image != NULL) {
        snprintf(session->shown_image, sizeof(session->shown_image), "%s", image);
    }
    for (int k = 0; k < 3; k++) {
        session->slices[k] = wholes[k] != 0;
    }
    session->has_volume = shown[0];
    session->hides_crystals = !shown[1];
    session->hides_lors = !shown[2];
    free(image);
    for (int k = 0; k < 3; k++) {
        free(words[k]);
    }
    return status;
}

/* --- the whole --- */

static lr_status read_session(const struct lr_yaml *yaml, char **mode,
                              struct lr_view_session *session)
{
    int version = 0, number = 0;
    struct fy_node *version_at = NULL, *mode_at = NULL;
    struct entry grid = {0}, camera = {0}, voxel = {0}, lor = {0}, ranges = {0}, shown = {0};
    const struct lr_yaml_field fields[] = {
        {LR_SESSION_KEY, NULL, LR_YAML_COUNT, true, &version, &version_at},
        {"scanner", NULL, LR_YAML_TEXT, false, &session->scanner, NULL},
        {"image", NULL, LR_YAML_TEXT, false, &session->image, NULL},
        {"mu", NULL, LR_YAML_TEXT, false, &session->mu, NULL},
        {"data", NULL, LR_YAML_TEXT, false, &session->data, NULL},
        {"grid", NULL, LR_YAML_NODE, false, &grid.value, &grid.key},
        {"camera", NULL, LR_YAML_NODE, false, &camera.value, &camera.key},
        {"mode", NULL, LR_YAML_TEXT, false, mode, &mode_at},
        {"voxel", NULL, LR_YAML_NODE, false, &voxel.value, &voxel.key},
        {"lor", NULL, LR_YAML_NODE, false, &lor.value, &lor.key},
        {"ranges", NULL, LR_YAML_NODE, false, &ranges.value, &ranges.key},
        {"shown", NULL, LR_YAML_NODE, false, &shown.value, &shown.key},
        {"window", NULL, LR_YAML_COUNT_PAIR, false, session->window, NULL},
    };
    struct fy_node *root = lr_yaml_root(yaml);
    const struct lr_yaml_mapping mapping = {root, root, "a session"};
    LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields)));
    if (version != LR_SESSION_VERSION) {
        return lr_yaml_error(yaml, version_at,
                             "this is a session of version %d, and this program knows version %d",
                             version, LR_SESSION_VERSION);
    }
    LR_TRY(take_word(yaml, &fields[7], lr_session_modes, &number));
    session->mode = (enum lr_session_mode)number;
    LR_TRY(read_grid(yaml, &grid, &session->grid));
    LR_TRY(read_camera(yaml, &camera, session));
    LR_TRY(read_voxel(yaml, &voxel, session));
    LR_TRY(read_lor(yaml, &lor, session));
    LR_TRY(read_ranges(yaml, &ranges, session));
    return read_shown(yaml, &shown, session);
}

/* Takes the document over. */
static lr_status take_document(struct lr_yaml *yaml, lr_status reason,
                               struct lr_view_session *session)
{
    char *mode = NULL;
    *session = (struct lr_view_session){0};
    const lr_status status = yaml != NULL ? read_session(yaml, &mode, session) : reason;
    free(mode);
    lr_yaml_destroy(yaml);
    if (status != LR_OK) {
        lr_view_session_finish(session);
    }
    return status;
}

/* Remembers why there is no document. */
struct reason {
    lr_log log;
    const lr_log *to;
    lr_status status;
};

static void note_reason(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct reason *reason = user;
    reason->status = level == LR_LOG_ERROR ? status : reason->status;
    if (reason->to != NULL) {
        reason->to->write(reason->to->user, level, status, sentence);
    }
}

lr_status lr_view_session_read(const char *path, struct lr_view_session *session, const lr_log *log)
{
    struct reason reason = {{note_reason, &reason}, log, LR_BAD_INPUT};
    const struct lr_c_locale locale = lr_c_locale_enter();
    struct lr_yaml *yaml = lr_yaml_read(path, &reason.log);
    const lr_status status = take_document(yaml, reason.status, session);
    lr_c_locale_leave(locale);
    return status;
}

lr_status lr_view_session_parse(const char *name, const char *text, int64_t text_bytes,
                                struct lr_view_session *session, const lr_log *log)
{
    struct reason reason = {{note_reason, &reason}, log, LR_BAD_INPUT};
    const struct lr_c_locale locale = lr_c_locale_enter();
    struct lr_yaml *yaml = lr_yaml_parse(name, text, text_bytes, &reason.log);
    const lr_status status = take_document(yaml, reason.status, session);
    lr_c_locale_leave(locale);
    return status;
}
