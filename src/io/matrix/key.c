/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The key of a matrix: all that its rows depend on, in words and digests. */
#include "io/checkpoints/key.h"
#include "base/grow.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "io/files/c_locale.h"
#include "io/matrix/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- digests --- */

static void add_module(struct lr_sha256 *sha, const lr_module *module)
{
    const int places[3] = {module->position, module->ring, module->first_crystal_ring};
    lr_sha256_add(sha, module->centre_mm, sizeof(module->centre_mm));
    lr_sha256_add(sha, module->u, sizeof(module->u));
    lr_sha256_add(sha, module->v, sizeof(module->v));
    lr_sha256_add(sha, module->normal, sizeof(module->normal));
    lr_sha256_add(sha, module->crystals, sizeof(module->crystals));
    lr_sha256_add(sha, module->pitch_mm, sizeof(module->pitch_mm));
    lr_sha256_add(sha, module->face_mm, sizeof(module->face_mm));
    lr_sha256_add(sha, &module->depth_mm, sizeof(module->depth_mm));
    lr_sha256_add(sha, places, sizeof(places));
    if (module->layer > 0) /* scanners without layers keep their keys */
        lr_sha256_add(sha, &module->layer, sizeof(module->layer));
    if (module->mu_per_mm > 0) lr_sha256_add(sha, &module->mu_per_mm, sizeof(module->mu_per_mm));
}

static void digest_scanner(const lr_lors *lors, char digest[lr_sha256_chars])
{
    const lr_scanner *scanner = lors->scanner;
    const lr_coincidence *rules = &scanner->coincidence;
    const int whole[5] = {scanner->num_modules, scanner->num_positions, rules->min_module_difference,
                          rules->limits_ring_difference, rules->max_ring_difference};
    const double lengths[4] = {rules->field_of_view_mm, scanner->detection_depth_mm, scanner->tof_resolution_ps,
                               scanner->crystal_mu_per_mm};
    struct lr_sha256 sha;
    lr_sha256_begin(&sha);
    lr_sha256_add(&sha, whole, sizeof(whole));
    lr_sha256_add(&sha, lengths, sizeof(lengths));
    for (int m = 0; m < scanner->num_modules; m++) add_module(&sha, &scanner->modules[m]);
    lr_sha256_add(&sha, lors->pairs, (size_t)lors->num_pairs * sizeof(*lors->pairs));
    lr_sha256_add(&sha, lors->offsets, (size_t)(lors->num_pairs + 1) * sizeof(*lors->offsets));
    lr_sha256_end(&sha, digest);
}

/* A list, and how long it is, so that two lists in a row are not taken for one. */
static void add_list(struct lr_sha256 *sha, const void *items, int64_t count, size_t bytes)
{
    const int64_t num = items != NULL ? count : -1;
    lr_sha256_add(sha, &num, sizeof(num));
    if (num > 0) lr_sha256_add(sha, items, (size_t)num * bytes);
}

static void digest_rows(const lr_matrix_writer_params *params, int64_t num_rows, char digest[lr_sha256_chars])
{
    static const lr_selection all;
    const lr_selection *part = params->part != NULL ? params->part : &all;
    const int64_t range[2] = {params->begin, num_rows};
    struct lr_sha256 sha;
    lr_sha256_begin(&sha);
    lr_sha256_add(&sha, range, sizeof(range));
    add_list(&sha, params->voxels, params->num_voxels, sizeof(*params->voxels));
    add_list(&sha, params->points_mm, params->num_points, sizeof(*params->points_mm));
    add_list(&sha, part->lors, part->num_lors, sizeof(*part->lors));
    add_list(&sha, part->pairs, part->num_pairs, sizeof(*part->pairs));
    lr_sha256_end(&sha, digest);
}

/* --- the text --- */

static void put_model(struct lr_text *text, const lr_operator_info *info)
{
    if (info != NULL) {
        (void)lr_text_print(text, "; backend %s, mode %s, rays %d, samples %d,%d,%d, steps of attenuation %d",
                            info->backend, info->mode == LR_MODE_EXACT ? "exact" : "sampled", info->rays,
                            info->samples[0], info->samples[1], info->samples[2], info->mu_steps);
    }
}

static void put_inputs(struct lr_text *text, const lr_matrix_writer_params *params)
{
    for (int k = 0; k < params->num_inputs; k++) {
        const lr_matrix_input *input = &params->inputs[k];
        char digest[lr_sha256_chars];
        struct lr_sha256 sha;
        lr_sha256_begin(&sha);
        lr_sha256_add(&sha, input->bytes, (size_t)input->num_bytes);
        (void)lr_text_print(text, "; %s%s%s", input->name, LR_KEY_CONTENTS, lr_sha256_end(&sha, digest));
    }
}

static void put_all(struct lr_text *text, const lr_matrix_writer_params *params, int64_t num_rows)
{
    const lr_grid none = {{0}, {0}, {0}}, *grid = params->grid != NULL ? params->grid : &none;
    const char *name = params->lors->scanner->name;
    char scanner[lr_sha256_chars], rows[lr_sha256_chars];
    digest_scanner(params->lors, scanner);
    digest_rows(params, num_rows, rows);
    (void)lr_text_print(text, "version %s; scanner %s%s%s", lr_version(), name != NULL ? name : "", LR_KEY_CONTENTS,
                        scanner);
    (void)lr_text_print(text, "; grid %d,%d,%d of %.17g,%.17g,%.17g mm at %.17g,%.17g,%.17g", grid->size[0],
                        grid->size[1], grid->size[2], grid->voxel_mm[0], grid->voxel_mm[1], grid->voxel_mm[2],
                        grid->origin_mm[0], grid->origin_mm[1], grid->origin_mm[2]);
    (void)lr_text_print(text, "; %s; factors %s", params->description != NULL ? params->description : "",
                        params->factors != NULL ? params->factors : "none");
    put_model(text, params->info);
    put_inputs(text, params);
    (void)lr_text_print(text, "; rows of %s%s%s; threshold %.17g",
                        params->by_lor         ? "LORs"
                        : params->grid != NULL ? "voxels"
                                               : "points",
                        LR_KEY_CONTENTS, rows, params->threshold);
    if (params->share != NULL) {
        (void)lr_text_print(text, "; part %lld of %lld", (long long)params->share->number,
                            (long long)params->share->parts);
    }
}

char *lr_matrix_key(const lr_matrix_writer_params *params, int64_t num_rows)
{
    struct lr_text text = {.what = "a file's head", .log = params->log};
    const struct lr_c_locale locale = lr_c_locale_enter();
    put_all(&text, params, num_rows);
    lr_c_locale_leave(locale);
    if (text.failed) {
        free(text.chars);
        return NULL;
    }
    return text.chars;
}

/* --- of parts --- */

int64_t lr_matrix_num_rows(const lr_matrix_writer_params *params)
{
    if (params->by_lor) return lr_selection_count(params->lors, params->part);
    if (params->grid == NULL) return params->num_points;
    return params->voxels != NULL ? params->num_voxels : params->end - params->begin;
}

static const char share_format[] = "part %lld of %lld, from row %lld of %lld; ";

char *lr_matrix_share_text(const lr_matrix_writer_params *params)
{
    const lr_matrix_part *share = params->share;
    lr_matrix_writer_params whole = *share->whole;
    whole.begin = whole.grid != NULL ? whole.begin : 0;
    const int64_t rows = lr_matrix_num_rows(&whole);
    struct lr_text text = {.what = "a file's head", .log = params->log};
    char *key = lr_matrix_key(&whole, rows);
    if (key != NULL) {
        (void)lr_text_print(&text, share_format, (long long)share->number, (long long)share->parts,
                            (long long)share->rows_before, (long long)rows);
        (void)lr_text_add(&text, key, strlen(key));
    }
    free(key);
    if (text.failed) {
        free(text.chars);
        return NULL;
    }
    return text.chars;
}

bool lr_matrix_share_parse(const char *text, struct lr_matrix_share *share)
{
    long long numbers[4];
    const char *key = strchr(text, ';');
    if (key == NULL || sscanf(text, "part %lld of %lld, from row %lld of %lld;", &numbers[0], &numbers[1], &numbers[2],
                              &numbers[3]) != 4)
        return false;
    *share = (struct lr_matrix_share){numbers[0], numbers[1], numbers[2], numbers[3], key + 1 + strspn(key + 1, " ")};
    return share->number >= 1 && share->number <= share->parts && share->rows_before >= 0;
}
