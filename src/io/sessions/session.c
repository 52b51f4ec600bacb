/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Functions that check, write and read sessions. */
#include "io/sessions/session.h"

#include "base/clean_text.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vec.h"
#include "io/files/number_type.h"
#include "io/files/yaml.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first key of the file, whose value is the version. */
#define SESSION_KEY "view_session"
enum { SESSION_VERSION = 1 };

const char *const lr_session_modes[] = {"scene", "voxel", "lor", "sensitivity", "recon", "direct", "measure", NULL};
const char *const lr_session_kernels[] = {"lor", "tube", "line", "exact", NULL};
const char *const lr_session_panes[] = {"four", "sagittal", "coronal", "transaxial", "scene", NULL};
const char *const lr_session_mixes[] = {"none", "fused", "difference", "ratio", "checkerboard", NULL};
static const char *const families[] = {"correspondence", "direct", "listmode", NULL};
static const char *const algorithms[] = {"osem", "ramla", NULL};
static const char *const elements[] = {"tube", "line", "exact", NULL};
static const char *const matrix_modes[] = {"auto", "sampled", "exact", NULL};
static const char *const absorptions[] = {"with", "without", NULL};
static const char *const backends[] = {"raster", "compute", "cpu", NULL};
static const char *const showings[] = {"hidden", "shown", NULL};

void lr_view_session_finish(struct lr_view_session *session)
{
    lr_free_all(session->scanner, session->image, session->mu, session->second, session->data);
    *session = (struct lr_view_session){0};
}

/* Comments and empty lines may precede the key. */
bool lr_view_session_recognises(const char *text)
{
    while (*text == '#' || *text == '\n' || *text == '\r') {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return strncmp(text, SESSION_KEY ":", sizeof(SESSION_KEY)) == 0;
}

/* --- checks that a session, once written, can be read --- */

static lr_status check_text(const char *what, const char *text, const lr_log *log)
{
    const unsigned char *at = (const unsigned char *)text;
    if (text != NULL && *text == '\0')
        return lr_error(log, LR_USAGE, "a session cannot keep an empty name of the %s", what);
    while (at != NULL && *at != '\0') {
        const size_t count = lr_character_bytes(at);
        if (count == 0) {
            return lr_error(log, LR_USAGE, "a session cannot keep the path of the %s, which is no UTF-8: rename it",
                            what);
        }
        at += count;
    }
    return LR_OK;
}

static lr_status check(const struct lr_view_session *session, const lr_log *log)
{
    LR_TRY(check_text("scanner", session->scanner, log));
    LR_TRY(check_text("image", session->image, log));
    LR_TRY(check_text("mu-map", session->mu, log));
    LR_TRY(check_text("second image", session->second, log));
    LR_TRY(check_text("data", session->data, log));
    if (session->grid.size[0] > 0) LR_TRY(lr_grid_check(&session->grid, log));
    bool good = vec_is_finite(session->eye_mm) && vec_is_finite(session->target_mm) && vec_is_finite(session->up) &&
                vec_is_finite(session->slices_mm) && vec_is_finite(session->point_mm) && session->view_angle_deg >= 0 &&
                session->view_angle_deg < 180 && session->primary >= 0 && session->rays >= 0 && session->samples >= 0 &&
                session->mu_steps >= 0 && isfinite(session->tof_mm) && session->recon_subsets >= 0 &&
                session->opacity >= 0 && session->opacity <= 1;
    for (int k = 0; k < 6; k++) good = good && session->lor[k] >= 0;
    if (!(good && (session->window[0] == 0) == (session->window[1] == 0) && session->window[0] >= 0 &&
          session->window[1] >= 0))
        return lr_error(log, LR_USAGE, "a session cannot keep numbers that are negative or not finite");
    for (int k = 0; k < session->num_ranges; k++) {
        const struct lr_session_range *range = &session->ranges[k];
        LR_TRY(check_text("range", range->name, log));
        if (!isfinite(range->low) || !isfinite(range->high) || !(range->low < range->high)) {
            return lr_error(log, LR_USAGE, "a session cannot keep the range %g to %g of %s", range->low, range->high,
                            range->name);
        }
    }
    return LR_OK;
}

/* --- writing --- */

static void put_path(struct lr_output *output, const char *key, const char *path)
{
    if (path != NULL) {
        lr_yaml_put(output, "%s: ", key);
        lr_yaml_put_text(output, path, strlen(path));
    }
}

static void put_vector(struct lr_output *output, const char *key, const double values[3])
{
    lr_yaml_put_numbers(output, key, values, 3);
    lr_yaml_put(output, "\n");
}

static void put_count(struct lr_output *output, const char *key, int count)
{
    if (count > 0) lr_yaml_put(output, "%s: %d\n", key, count);
}

lr_status lr_view_session_write(const char *path, const struct lr_view_session *session, const lr_log *log)
{
    struct lr_output output;
    LR_TRY(check(session, log));
    LR_TRY(lr_output_open(&output, path, log));
    const struct lr_c_locale locale = lr_c_locale_enter();
    const lr_grid *grid = &session->grid;
    const int *lor = session->lor;
    char low[32], high[32];
    lr_yaml_put(&output, "# Written by LORaster %s.\n" SESSION_KEY ": %d\n", lr_version(), SESSION_VERSION);
    put_path(&output, "scanner", session->scanner);
    put_path(&output, "image", session->image);
    put_path(&output, "mu", session->mu);
    put_path(&output, "second", session->second);
    put_path(&output, "data", session->data);
    if (grid->size[0] != 0) {
        lr_yaml_put(&output, "grid:\n  size: [%d, %d, %d]\n", grid->size[0], grid->size[1], grid->size[2]);
        put_vector(&output, "  voxel_mm", grid->voxel_mm);
        put_vector(&output, "  origin_mm", grid->origin_mm);
    }
    if (session->has_camera) {
        lr_yaml_put(&output, "camera:\n");
        put_vector(&output, "  eye_mm", session->eye_mm);
        put_vector(&output, "  target_mm", session->target_mm);
        put_vector(&output, "  up", session->up);
        lr_yaml_put(&output, "  view_angle_deg: %s\n", lr_yaml_number(low, session->view_angle_deg));
    }

    lr_yaml_put(&output, "mode: %s\n", lr_session_modes[session->mode]);
    if (session->has_voxel) {
        lr_yaml_put(&output, "voxel:\n");
        put_vector(&output, "  point_mm", session->point_mm);
        if (!session->all_primaries) lr_yaml_put(&output, "  primary: %d\n", session->primary);
        lr_yaml_put(&output, "  matrix: %s\n", matrix_modes[session->matrix_mode]);
        put_count(&output, "  rays", session->rays);
        put_count(&output, "  samples", session->samples);
        put_count(&output, "  mu_steps", session->mu_steps);
        lr_yaml_put(&output, "  absorption: %s\n", absorptions[session->without_mu]);
        lr_yaml_put(&output, "  backend: %s\n", backends[session->backend]);
    }
    if (session->has_lor) {
        lr_yaml_put(&output, "lor:\n  first: [%d, %d, %d]\n  second: [%d, %d, %d]\n", lor[0], lor[1], lor[2], lor[3],
                    lor[4], lor[5]);
        lr_yaml_put(&output, "  kernel: %s\n", lr_session_kernels[session->lor_kernel]);
        if (session->has_tof) lr_yaml_put(&output, "  tof_mm: %s\n", lr_yaml_number(low, session->tof_mm));
    }
    if (session->has_recon) {
        lr_yaml_put(&output, "recon:\n  family: %s\n  algorithm: %s\n  elements: %s\n", families[session->recon_family],
                    algorithms[session->recon_algorithm], elements[session->recon_elements]);
        put_count(&output, "  subsets", session->recon_subsets);
    }

    for (int k = 0; k < session->num_ranges; k++) {
        const struct lr_session_range *range = &session->ranges[k];
        lr_yaml_put(&output, "%s  - name: ", k == 0 ? "ranges:\n" : "");
        lr_yaml_put_text(&output, range->name, strlen(range->name));
        lr_yaml_put(&output, "    low: %s\n    high: %s\n", lr_yaml_number(low, range->low),
                    lr_yaml_number(high, range->high));
    }
    if (session->has_shown) {
        lr_yaml_put(&output, "shown:\n");
        put_path(&output, "  image", session->shown_image[0] != '\0' ? session->shown_image : NULL);
        lr_yaml_put(&output, "  slices: [%d, %d, %d]\n", session->slices[0], session->slices[1], session->slices[2]);
        put_vector(&output, "  slices_mm", session->slices_mm);
        lr_yaml_put(&output, "  volume: %s\n  crystals: %s\n  lors: %s\n", showings[session->has_volume],
                    showings[!session->hides_crystals], showings[!session->hides_lors]);
        lr_yaml_put(&output, "  panes: %s\n  combined: %s\n  opacity: %s\n", lr_session_panes[session->panes],
                    lr_session_mixes[session->mix], lr_yaml_number(low, session->opacity));
    }
    if (session->window[0] > 0) lr_yaml_put(&output, "window: [%d, %d]\n", session->window[0], session->window[1]);
    lr_c_locale_leave(locale);
    return lr_output_finish(&output);
}

/* --- reading --- */

#define NUM_FIELDS(fields) ((int)(sizeof(fields) / sizeof((fields)[0])))

/* Takes a list of three integers, each at least `least`. */
static lr_status take_wholes(const struct lr_yaml *yaml, const struct lr_yaml_field *field, int least, int wholes[3])
{
    const double *numbers = field->value;
    for (int k = 0; k < 3; k++) {
        if (numbers[k] != floor(numbers[k]) || numbers[k] < least || numbers[k] > INT_MAX) {
            return lr_yaml_error(yaml, *field->at, "'%s[%d]' must be a whole number from %d to %d, found %.10g",
                                 field->key, k, least, INT_MAX, numbers[k]);
        }
        wholes[k] = (int)numbers[k];
    }
    return LR_OK;
}

/* Takes one of the given words, and frees the text. */
static lr_status take_word(const struct lr_yaml *yaml, const struct lr_yaml_field *field, const char *const *words,
                           int *index)
{
    char **text = field->value;
    char known[128] = "";
    if (*text == NULL) return LR_OK;
    int found = -1;
    for (int k = 0; words[k] != NULL; k++) {
        lr_names_add(known, sizeof(known), words[k]);
        found = strcmp(words[k], *text) == 0 ? k : found;
    }
    const lr_status status =
        found >= 0 ? LR_OK
                   : lr_yaml_error(yaml, *field->at, "'%s' must be one of %s, found '%.40s'", field->key, known, *text);
    *index = found >= 0 ? found : *index;
    free(*text);
    *text = NULL;
    return status;
}

static lr_status read_grid(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry, lr_grid *grid)
{
    double size[3] = {0};
    struct fy_node *size_at = NULL, *voxel_at = NULL;
    const struct lr_yaml_field fields[] = {
        {"size", NULL, LR_YAML_VECTOR, true, size, &size_at},
        {"voxel_mm", NULL, LR_YAML_VECTOR, true, grid->voxel_mm, &voxel_at},
        {"origin_mm", NULL, LR_YAML_VECTOR, true, grid->origin_mm, NULL},
    };
    const struct lr_yaml_mapping mapping = {entry->value, entry->key, "a grid"};
    if (entry->key == NULL) return LR_OK;
    LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields)));
    LR_TRY(take_wholes(yaml, &fields[0], 1, grid->size));
    for (int k = 0; k < 3; k++)
        if (!(grid->voxel_mm[k] > 0)) return lr_yaml_error(yaml, voxel_at, "'voxel_mm[%d]' must be greater than 0", k);
    return lr_grid_check(grid, NULL) == LR_OK
               ? LR_OK
               : lr_yaml_error(yaml, size_at, "the grid has more than 2147483648 voxels");
}

static lr_status read_camera(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry,
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
    if (entry->key == NULL) return LR_OK;
    LR_TRY(lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields)));
    return session->view_angle_deg < 180 ? LR_OK
                                         : lr_yaml_error(yaml, angle_at, "'view_angle_deg' must be less than 180");
}

/* If the file names no primary, the voxel has all primaries. */
static lr_status read_voxel(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry,
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
    if (entry->key == NULL) return LR_OK;
    int mode = LR_MODE_AUTO, without = 0;
    lr_status status = lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields));
    if (status == LR_OK) status = take_word(yaml, &fields[2], matrix_modes, &mode);
    if (status == LR_OK) status = take_word(yaml, &fields[6], absorptions, &without);
    if (status == LR_OK) status = take_word(yaml, &fields[7], backends, &session->backend);
    lr_free_all(matrix, absorption, backend);
    session->has_voxel = true;
    session->all_primaries = primary_at == NULL;
    session->matrix_mode = (lr_mode)mode;
    session->without_mu = without != 0;
    return status;
}

static lr_status read_lor(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry,
                          struct lr_view_session *session)
{
    double ends[2][3] = {{0}};
    char *kernel = NULL;
    struct fy_node *at[2] = {NULL}, *kernel_at = NULL, *tof_at = NULL;
    const struct lr_yaml_field fields[] = {
        {"first", NULL, LR_YAML_VECTOR, true, ends[0], &at[0]},
        {"second", NULL, LR_YAML_VECTOR, true, ends[1], &at[1]},
        {"kernel", NULL, LR_YAML_TEXT, false, &kernel, &kernel_at},
        {"tof_mm", NULL, LR_YAML_NUMBER, false, &session->tof_mm, &tof_at},
    };
    const struct lr_yaml_mapping mapping = {entry->value, entry->key, "a LOR"};
    session->has_lor = entry->key != NULL;
    if (entry->key == NULL) return LR_OK;
    lr_status status = lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields));
    status = status == LR_OK ? take_wholes(yaml, &fields[0], 0, session->lor) : status;
    status = status == LR_OK ? take_wholes(yaml, &fields[1], 0, session->lor + 3) : status;
    status = status == LR_OK ? take_word(yaml, &fields[2], lr_session_kernels, &session->lor_kernel) : status;
    free(kernel);
    session->has_tof = tof_at != NULL;
    return status;
}

static lr_status read_recon(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry,
                            struct lr_view_session *session)
{
    char *texts[3] = {NULL, NULL, NULL};
    struct fy_node *at[3] = {NULL, NULL, NULL};
    const struct lr_yaml_field fields[] = {
        {"family", NULL, LR_YAML_TEXT, false, &texts[0], &at[0]},
        {"algorithm", NULL, LR_YAML_TEXT, false, &texts[1], &at[1]},
        {"elements", NULL, LR_YAML_TEXT, false, &texts[2], &at[2]},
        {"subsets", NULL, LR_YAML_COUNT, false, &session->recon_subsets, NULL},
    };
    static const char *const *const words[3] = {families, algorithms, elements};
    int *const numbers[3] = {&session->recon_family, &session->recon_algorithm, &session->recon_elements};
    const struct lr_yaml_mapping mapping = {entry->value, entry->key, "a reconstruction"};
    session->has_recon = entry->key != NULL;
    if (entry->key == NULL) return LR_OK;
    lr_status status = lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields));
    for (int k = 0; k < 3; k++) {
        status = status == LR_OK ? take_word(yaml, &fields[k], words[k], numbers[k]) : status;
        free(texts[k]);
    }
    return status;
}

static lr_status read_ranges(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry,
                             struct lr_view_session *session)
{
    void *iterator = NULL;
    struct fy_node *item;
    if (entry->key == NULL) return LR_OK;
    if (entry->value == NULL || !fy_node_is_sequence(entry->value))
        return lr_yaml_error(yaml, entry->key, "'ranges' must be a list of {name, low, high}");
    while ((item = fy_node_sequence_iterate(entry->value, &iterator)) != NULL) {
        if (session->num_ranges == LR_SESSION_RANGES)
            return lr_yaml_error(yaml, entry->key, "'ranges' has more than %d entries", LR_SESSION_RANGES);
        struct lr_session_range *range = &session->ranges[session->num_ranges];
        char *name = NULL;
        struct fy_node *name_at = NULL, *high_at = NULL;
        const struct lr_yaml_field fields[] = {
            {"name", NULL, LR_YAML_TEXT, true, &name, &name_at},
            {"low", NULL, LR_YAML_NUMBER, true, &range->low, NULL},
            {"high", NULL, LR_YAML_NUMBER, true, &range->high, &high_at},
        };
        const struct lr_yaml_mapping mapping = {item, entry->key, "a range"};
        lr_status status = lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields));
        if (status == LR_OK && strlen(name) >= LR_SESSION_NAME)
            status = lr_yaml_error(yaml, name_at, "'name' must have at most %d bytes", LR_SESSION_NAME - 1);
        if (status == LR_OK && !(range->low < range->high))
            status = lr_yaml_error(yaml, high_at, "'high' must be greater than 'low'");
        if (status == LR_OK) snprintf(range->name, sizeof(range->name), "%s", name);
        free(name);
        LR_TRY(status);

        session->num_ranges++;
    }
    return LR_OK;
}

static lr_status read_shown(const struct lr_yaml *yaml, const struct lr_yaml_entry *entry,
                            struct lr_view_session *session)
{
    enum { WORDS = 5 };
    static const char *const *const choices[WORDS] = {showings, showings, showings, lr_session_panes, lr_session_mixes};
    char *image = NULL, *words[WORDS] = {NULL};
    double slices[3] = {0};
    struct fy_node *image_at = NULL, *slices_at = NULL, *opacity_at = NULL, *words_at[WORDS] = {NULL};
    const struct lr_yaml_field fields[] = {
        {"image", NULL, LR_YAML_TEXT, false, &image, &image_at},
        {"slices", NULL, LR_YAML_VECTOR, true, slices, &slices_at},
        {"slices_mm", NULL, LR_YAML_VECTOR, true, session->slices_mm, NULL},
        {"volume", NULL, LR_YAML_TEXT, false, &words[0], &words_at[0]},
        {"crystals", NULL, LR_YAML_TEXT, false, &words[1], &words_at[1]},
        {"lors", NULL, LR_YAML_TEXT, false, &words[2], &words_at[2]},
        {"panes", NULL, LR_YAML_TEXT, false, &words[3], &words_at[3]},
        {"combined", NULL, LR_YAML_TEXT, false, &words[4], &words_at[4]},
        {"opacity", NULL, LR_YAML_NUMBER, false, &session->opacity, &opacity_at},
    };
    const struct lr_yaml_mapping mapping = {entry->value, entry->key, "what is shown"};
    int shown[WORDS] = {0, 1, 1, 0, 0}, wholes[3] = {0};
    if (entry->key == NULL) return LR_OK;
    session->has_shown = true;
    lr_status status = lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields));
    for (int k = 0; k < WORDS && status == LR_OK; k++) status = take_word(yaml, &fields[3 + k], choices[k], &shown[k]);
    if (status == LR_OK && !(session->opacity >= 0 && session->opacity <= 1))
        status = lr_yaml_error(yaml, opacity_at, "'opacity' must be from 0 to 1");
    if (status == LR_OK) status = take_wholes(yaml, &fields[1], 0, wholes);
    if (status == LR_OK && image != NULL && strlen(image) >= LR_SESSION_NAME)
        status = lr_yaml_error(yaml, image_at, "'image' must have at most %d bytes", LR_SESSION_NAME - 1);
    if (status == LR_OK && image != NULL) snprintf(session->shown_image, sizeof(session->shown_image), "%s", image);
    for (int k = 0; k < 3; k++) session->slices[k] = wholes[k] != 0;
    session->has_volume = shown[0];
    session->hides_crystals = !shown[1];
    session->hides_lors = !shown[2];
    session->panes = shown[3];
    session->mix = shown[4];
    free(image);
    for (int k = 0; k < WORDS; k++) free(words[k]);
    return status;
}

static lr_status read_document(const struct lr_yaml *yaml, struct lr_view_session *session)
{
    char *mode = NULL;
    int version = 0, number = 0;
    struct fy_node *version_at = NULL, *mode_at = NULL;
    struct lr_yaml_entry grid = {0}, camera = {0}, voxel = {0}, lor = {0}, recon = {0}, ranges = {0}, shown = {0};
    const struct lr_yaml_field fields[] = {
        {SESSION_KEY, NULL, LR_YAML_COUNT, true, &version, &version_at},
        {"scanner", NULL, LR_YAML_TEXT, false, &session->scanner, NULL},
        {"image", NULL, LR_YAML_TEXT, false, &session->image, NULL},
        {"mu", NULL, LR_YAML_TEXT, false, &session->mu, NULL},
        {"data", NULL, LR_YAML_TEXT, false, &session->data, NULL},
        {"grid", NULL, LR_YAML_NODE, false, &grid.value, &grid.key},
        {"camera", NULL, LR_YAML_NODE, false, &camera.value, &camera.key},
        {"mode", NULL, LR_YAML_TEXT, false, &mode, &mode_at},
        {"voxel", NULL, LR_YAML_NODE, false, &voxel.value, &voxel.key},
        {"lor", NULL, LR_YAML_NODE, false, &lor.value, &lor.key},
        {"recon", NULL, LR_YAML_NODE, false, &recon.value, &recon.key},
        {"ranges", NULL, LR_YAML_NODE, false, &ranges.value, &ranges.key},
        {"shown", NULL, LR_YAML_NODE, false, &shown.value, &shown.key},
        {"window", NULL, LR_YAML_COUNT_PAIR, false, session->window, NULL},
        {"second", NULL, LR_YAML_TEXT, false, &session->second, NULL},
    };
    struct fy_node *root = fy_document_root(yaml->document);
    const struct lr_yaml_mapping mapping = {root, root, "a session"};
    lr_status status = lr_yaml_read_fields(yaml, &mapping, fields, NUM_FIELDS(fields));
    if (status == LR_OK && version != SESSION_VERSION) {
        status = lr_yaml_error(yaml, version_at, "this is a session of version %d, and this program knows version %d",
                               version, SESSION_VERSION);
    }
    if (status == LR_OK) status = take_word(yaml, &fields[7], lr_session_modes, &number);
    if (status == LR_OK) session->mode = (enum lr_session_mode)number;
    if (status == LR_OK) status = read_grid(yaml, &grid, &session->grid);
    if (status == LR_OK) status = read_camera(yaml, &camera, session);
    if (status == LR_OK) status = read_voxel(yaml, &voxel, session);
    if (status == LR_OK) status = read_lor(yaml, &lor, session);
    if (status == LR_OK) status = read_recon(yaml, &recon, session);
    if (status == LR_OK) status = read_ranges(yaml, &ranges, session);
    if (status == LR_OK) status = read_shown(yaml, &shown, session);
    free(mode);
    if (status != LR_OK) lr_view_session_finish(session);
    return status;
}

lr_status lr_view_session_read(const char *path, struct lr_view_session *session, const lr_log *log)
{
    struct lr_watched_log reason;
    lr_log_watch(&reason, log);
    *session = (struct lr_view_session){0};
    const struct lr_c_locale locale = lr_c_locale_enter();
    struct lr_yaml *yaml = lr_yaml_read(path, &reason.log);
    const lr_status status = yaml != NULL ? read_document(yaml, session) : reason.status;
    lr_yaml_destroy(yaml);
    lr_c_locale_leave(locale);
    return status;
}
