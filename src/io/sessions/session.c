/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Sessions: what they hold, and writing them. */
#include "io/sessions/session.h"

#include "base/clean_text.h"
#include "base/log.h"
#include "io/files/c_locale.h"
#include "io/files/yaml_put.h"
#include "io/sessions/session_keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const lr_session_modes[] = {"scene", "voxel",  "lor", "sensitivity",
                                        "recon", "direct", NULL};
const char *const lr_session_matrix_modes[] = {"auto", "sampled", "exact", NULL};
const char *const lr_session_absorptions[] = {"with", "without", NULL};
const char *const lr_session_backends[] = {"raster", "compute", "cpu", NULL};
const char *const lr_session_showings[] = {"hidden", "shown", NULL};

void lr_view_session_finish(struct lr_view_session *session)
{
    free(session->scanner);
    free(session->image);
    free(session->mu);
    free(session->data);
    *session = (struct lr_view_session){0};
}

/* The key stands first but for comments. */
bool lr_view_session_recognises(const char *text)
{
    while (*text == '#' || *text == '\n' || *text == '\r') {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return strncmp(text, LR_SESSION_KEY ":", sizeof(LR_SESSION_KEY)) == 0;
}

/* --- what can be read back --- */

static lr_status check_text(const char *what, const char *text, const lr_log *log)
{
    const unsigned char *at = (const unsigned char *)text;
    if (text != NULL && *text == '\0') {
        return lr_error(log, LR_USAGE, "a session cannot keep an empty name of the %s", what);
    }
    while (at != NULL && *at != '\0') {
        const size_t count = lr_character_bytes(at);
        if (count == 0) {
            return lr_error(log, LR_USAGE,
                            "a session cannot keep the path of the %s, which is no UTF-8: rename "
                            "it",
                            what);
        }
        at += count;
    }
    return LR_OK;
}

static bool all_finite(const double *values, int count)
{
    for (int k = 0; k < count; k++) {
        if (!isfinite(values[k])) {
            return false;
        }
    }
    return true;
}

static bool numbers_are_good(const struct lr_view_session *session)
{
    bool good = all_finite(session->eye_mm, 3) && all_finite(session->target_mm, 3) &&
                all_finite(session->up, 3) && all_finite(session->slices_mm, 3) &&
                all_finite(session->point_mm, 3) && session->view_angle_deg >= 0 &&
                session->view_angle_deg < 180 && session->primary >= 0 && session->rays >= 0 &&
                session->samples >= 0 && session->mu_steps >= 0;
    for (int k = 0; k < 6; k++) {
        good = good && session->lor[k] >= 0;
    }
    return good && (session->window[0] == 0) == (session->window[1] == 0) &&
           session->window[0] >= 0 && session->window[1] >= 0;
}

static lr_status check_ranges(const struct lr_view_session *session, const lr_log *log)
{
    for (int k = 0; k < session->num_ranges; k++) {
        const struct lr_session_range *range = &session->ranges[k];
        LR_TRY(check_text("range", range->name, log));
        if (!isfinite(range->low) || !isfinite(range->high) || !(range->low < range->high)) {
            return lr_error(log, LR_USAGE, "a session cannot keep the range %g to %g of %s",
                            range->low, range->high, range->name);
        }
    }
    return LR_OK;
}

static lr_status check(const struct lr_view_session *session, const lr_log *log)
{
    LR_TRY(check_text("scanner", session->scanner, log));
    LR_TRY(check_text("image", session->image, log));
    LR_TRY(check_text("mu-map", session->mu, log));
    LR_TRY(check_text("data", session->data, log));
    if (session->grid.size[0] > 0) {
        LR_TRY(lr_grid_check(&session->grid, log));
    }
    if (!numbers_are_good(session)) {
        return lr_error(log, LR_USAGE,
                        "a session cannot keep numbers that are negative or not finite");
    }
    return check_ranges(session, log);
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
    if (count > 0) {
        lr_yaml_put(output, "%s: %d\n", key, count);
    }
}

static void put_grid(struct lr_output *output, const lr_grid *grid)
{
    if (grid->size[0] == 0) {
        return;
    }
    lr_yaml_put(output, "grid:\n  size: [%d, %d, %d]\n", grid->size[0], grid->size[1],
                grid->size[2]);
    put_vector(output, "  voxel_mm", grid->voxel_mm);
    put_vector(output, "  origin_mm", grid->origin_mm);
}

static void put_camera(struct lr_output *output, const struct lr_view_session *session)
{
    char text[32];
    if (!session->has_camera) {
        return;
    }
    lr_yaml_put(output, "camera:\n");
    put_vector(output, "  eye_mm", session->eye_mm);
    put_vector(output, "  target_mm", session->target_mm);
    put_vector(output, "  up", session->up);
    lr_yaml_put(output, "  view_angle_deg: %s\n", lr_yaml_number(text, session->view_angle_deg));
}

static void put_voxel(struct lr_output *output, const struct lr_view_session *session)
{
    if (!session->has_voxel) {
        return;
    }
    lr_yaml_put(output, "voxel:\n");
    put_vector(output, "  point_mm", session->point_mm);
    if (!session->all_primaries) {
        lr_yaml_put(output, "  primary: %d\n", session->primary);
    }
    lr_yaml_put(output, "  matrix: %s\n", lr_session_matrix_modes[session->matrix_mode]);
    put_count(output, "  rays", session->rays);
    put_count(output, "  samples", session->samples);
    put_count(output, "  mu_steps", session->mu_steps);
    lr_yaml_put(output, "  absorption: %s\n", lr_session_absorptions[session->without_mu]);
    lr_yaml_put(output, "  backend: %s\n", lr_session_backends[session->backend]);
}

static void put_ranges(struct lr_output *output, const struct lr_view_session *session)
{
    char low[32], high[32];
    for (int k = 0; k < session->num_ranges; k++) {
        const struct lr_session_range *range = &session->ranges[k];
        lr_yaml_put(output, "%s  - name: ", k == 0 ? "ranges:\n" : "");
        lr_yaml_put_text(output, range->name, strlen(range->name));
        lr_yaml_put(output, "    low: %s\n    high: %s\n", lr_yaml_number(low, range->low),
                    lr_yaml_number(high, range->high));
    }
}

static void put_shown(struct lr_output *output, const struct lr_view_session *session)
{
    if (!session->has_shown) {
        return;
    }
    lr_yaml_put(output, "shown:\n");
    put_path(output, "  image", session->shown_image[0] != '\0' ? session->shown_image : NULL);
    lr_yaml_put(output, "  slices: [%d, %d, %d]\n", session->slices[0], session->slices[1],
                session->slices[2]);
    put_vector(output, "  slices_mm", session->slices_mm);
    lr_yaml_put(output, "  volume: %s\n  crystals: %s\n  lors: %s\n",
                lr_session_showings[session->has_volume],
                lr_session_showings[!session->hides_crystals],
                lr_session_showings[!session->hides_lors]);
}

static void put_session(struct lr_output *output, const struct lr_view_session *session)
{
    const int *lor = session->lor;
    lr_yaml_put(output, "# Written by LORaster %s.\n" LR_SESSION_KEY ": %d\n", lr_version(),
                LR_SESSION_VERSION);
    put_path(output, "scanner", session->scanner);
    put_path(output, "image", session->image);
    put_path(output, "mu", session->mu);
    put_path(output, "data", session->data);
    put_grid(output, &session->grid);
    put_camera(output, session);
    lr_yaml_put(output, "mode: %s\n", lr_session_modes[session->mode]);
    put_voxel(output, session);
    if (session->has_lor) {
        lr_yaml_put(output, "lor:\n  first: [%d, %d, %d]\n  second: [%d, %d, %d]\n", lor[0], lor[1],
                    lor[2], lor[3], lor[4], lor[5]);
    }
    put_ranges(output, session);
    put_shown(output, session);
    if (session->window[0] > 0) {
        lr_yaml_put(output, "window: [%d, %d]\n", session->window[0], session->window[1]);
    }
}

lr_status lr_view_session_write(const char *path, const struct lr_view_session *session,
                                const lr_log *log)
{
    struct lr_output output;
    LR_TRY(check(session, log));
    LR_TRY(lr_output_open(&output, path, log));
    const struct lr_c_locale locale = lr_c_locale_enter();
    put_session(&output, session);
    lr_c_locale_leave(locale);
    return lr_output_finish(&output);
}
