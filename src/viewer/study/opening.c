/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/opening.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "io/files/file_kind.h"
#include "viewer/study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A NIfTI file has no more; and what their numbers add to its name, with colon and end. */
enum { MOST_FRAMES = 32767, FRAME_DIGITS = 16 };

/* --- parts --- */

static void destroy_scanner(void *object)
{
    struct opened_scanner *opened = object;
    lr_scanner_draft_destroy(opened->draft);
    lr_lors_destroy(opened->lors);
    lr_scanner_destroy(opened->scanner);
    free(opened->path);
    free(opened);
}

static void destroy_image(void *object)
{
    struct opened_image *opened = object;
    lr_image_destroy(opened->image);
    free(opened->path);
    free(opened);
}

static void destroy_data(void *object)
{
    struct opened_data *opened = object;
    lr_lor_data_destroy(opened->prompts);
    lr_lor_data_destroy(opened->delayeds);
    free(opened->path);
    free(opened);
}

static void destroy_diagnosis(void *object)
{
    lr_diagnosis_destroy(object);
}

struct study_content study_content_hold(const struct study_content *content)
{
    struct study_content copy = *content;
    for (int k = 0; k < NUM_PARTS; k++) copy.parts[k] = shared_hold(content->parts[k]);
    return copy;
}

void study_content_release(struct study_content *content)
{
    for (int k = 0; k < NUM_PARTS; k++) shared_release(content->parts[k]);
    *content = (struct study_content){0};
}

/* Puts an object in the place of a part. */
static lr_status put(struct study_content *content, enum study_part part, struct shared *object)
{
    if (object == NULL) return LR_FAILED;
    shared_release(content->parts[part]);
    content->parts[part] = object;
    return LR_OK;
}

static const lr_scanner *scanner_of(const struct study_content *content)
{
    const struct opened_scanner *opened = shared_object(content->parts[PART_SCANNER]);
    return opened != NULL ? opened->scanner : NULL;
}

void study_content_settle_grid(struct study_content *content)
{
    const struct opened_image *opened = shared_object(content->parts[PART_IMAGE]);
    const lr_scanner *scanner = scanner_of(content);
    content->grid = (lr_grid){0};
    if (opened != NULL)
        content->grid = opened->image->grid;
    else if (content->chosen.size[0] > 0)
        content->grid = content->chosen;
    else if (scanner != NULL)
        content->grid = study_default_grid(scanner);
}

void opening_finish(struct opening *opening)
{
    for (int k = 0; k < NUM_PATHS; k++) free(opening->paths[k]);
    study_content_release(&opening->content);
    lr_scanner_draft_destroy(opening->refused);
    lr_diagnosis_destroy(opening->why);
    *opening = (struct opening){0};
}

/* --- the scanner --- */

/* A file that tells of a scanner which cannot be: what is wrong with it is worth more than that. */
static void examine_refused(struct opening *opening, lr_scanner_draft *draft)
{
    const lr_grid *grid = opening->grid.size[0] > 0 ? &opening->grid : NULL;
    opening->refused = draft;
    opening->why = lr_scanner_examine(draft, grid, NULL);
}

/* Takes the draft over. */
static lr_status take_scanner(struct opening *opening, struct opened_scanner *opened, const lr_log *log)
{
    struct opened_scanner *kept = lr_alloc(1, sizeof(*kept), "a scanner", log);
    if (kept == NULL) return LR_FAILED;
    *kept = *opened;
    *opened = (struct opened_scanner){0};
    struct study_content *content = &opening->content;
    shared_release(content->parts[PART_DATA]); /* numbers LORs of the old one */
    content->parts[PART_DATA] = NULL;
    content->chosen = (lr_grid){0};
    return put(content, PART_SCANNER, shared_create(kept, destroy_scanner, log));
}

static void opened_scanner_finish(struct opened_scanner *opened)
{
    lr_scanner_draft_destroy(opened->draft);
    lr_lors_destroy(opened->lors);
    lr_scanner_destroy(opened->scanner);
    free(opened->path);
}

static lr_status read_scanner(struct opening *opening, const char *path, const lr_log *log)
{
    struct lr_watched_log reason;
    lr_log_watch(&reason, log);
    struct opened_scanner opened = {.path = lr_copy_string(path, &reason.log)};
    const bool is_data = opening->paths[PATH_SCANNER] == NULL;
    if (opened.path != NULL && is_data && lr_file_kind_of(path) == LR_FILE_DATA) {
        opened.scanner = lr_scanner_read_hdf5(path, &reason.log);
        opened.draft = opened.scanner != NULL ? lr_scanner_draft_create(opened.scanner, &reason.log) : NULL;
    } else if (opened.path != NULL) {
        opened.draft = lr_scanner_draft_read(path, &reason.log);
        opened.scanner = opened.draft != NULL ? lr_scanner_read(path, &reason.log) : NULL;
    }
    opened.lors = opened.scanner != NULL ? lr_lors_create(opened.scanner, &reason.log) : NULL;
    if (opened.lors != NULL) {
        const lr_status status = take_scanner(opening, &opened, log);
        opened_scanner_finish(&opened);
        return status;
    }
    if (opened.draft != NULL) {
        examine_refused(opening, opened.draft);
        opened.draft = NULL;
    }
    opened_scanner_finish(&opened);
    return reason.status;
}

/* --- images --- */

static float largest_of(const lr_image *image)
{
    const int64_t count = lr_grid_num_voxels(&image->grid);
    float largest = 0;
    for (int64_t k = 0; k < count; k++) largest = image->values[k] > largest ? image->values[k] : largest;
    return largest;
}

/* The one file that has values far below 0 is a CT scan. */
static lr_mu_unit unit_of(const lr_image *image)
{
    const int64_t count = lr_grid_num_voxels(&image->grid);
    float lowest = 0;
    for (int64_t k = 0; k < count; k++) lowest = image->values[k] < lowest ? image->values[k] : lowest;
    return lowest < -100 ? LR_MU_HU : LR_MU_BY_VALUE;
}

/* Brings a mu-map to 1/mm, and says so where it was in another unit. */
static lr_status settle_unit(const struct opened_image *opened, const lr_log *log)
{
    const lr_mu_map_params params = {.unit = unit_of(opened->image), .name = opened->path, .log = log};
    const float before = largest_of(opened->image);
    LR_TRY(lr_mu_map_settle(opened->image, &params));
    if (largest_of(opened->image) < before) {
        lr_warn(log, "%s: attenuation of at most %g taken as %s", opened->path, (double)before,
                params.unit == LR_MU_HU ? "Hounsfield units: water has 0" : "1/cm: water has 0.096");
    }
    return LR_OK;
}

/* "pet.nii:3": the file, and the frame; 0 = the path names no frame. The whole is a file's name, too,
 * where there is such a file. */
static int split_path(const char *path, char *file)
{
    char *end = NULL;
    const char *colon = strrchr(path, ':');
    const long frame = colon != NULL ? strtol(colon + 1, &end, 10) : 0;
    const bool names_one = frame > 0 && frame <= MOST_FRAMES && *end == '\0';
    memcpy(file, path, strlen(path) + 1);
    if (!names_one || access(path, F_OK) == 0) return 0;
    file[colon - path] = '\0';
    return (int)frame;
}

/* Fills in path, image and frames; frees nothing. */
static lr_status take_image(struct opened_image *opened, const char *path, const lr_grid *grid, const lr_log *log)
{
    const size_t room = strlen(path) + FRAME_DIGITS;
    char *file = lr_alloc((int64_t)room, 1, "the name of an image", log);
    opened->path = lr_alloc((int64_t)room, 1, "the name of an image", log);
    if (file == NULL || opened->path == NULL) {
        free(file);
        return LR_FAILED;
    }
    int frame = split_path(path, file);
    opened->num_frames = lr_image_num_frames(file);
    frame = frame == 0 && opened->num_frames > 1 ? 1 : frame;
    if (frame > 0) {
        snprintf(opened->path, room, "%s:%d", file, frame);
        opened->image = lr_image_read_frame(file, frame, log);
    } else {
        snprintf(opened->path, room, "%s", path);
        opened->image = lr_image_read_on(path, grid->size[0] > 0 ? grid : NULL, log);
    }
    free(file);
    return opened->image != NULL ? LR_OK : LR_BAD_INPUT;
}

static lr_status read_image(struct opening *opening, enum study_path which, const lr_log *log)
{
    struct lr_watched_log reason;
    lr_log_watch(&reason, log);
    const lr_grid *grid = &opening->content.grid;
    struct opened_image *opened = lr_alloc(1, sizeof(*opened), "an image", &reason.log);
    if (opened == NULL) return reason.status;
    if (take_image(opened, opening->paths[which], grid, &reason.log) != LR_OK) {
        destroy_image(opened);
        return reason.status;
    }
    if (which == PATH_MU && settle_unit(opened, &reason.log) != LR_OK) {
        destroy_image(opened);
        return reason.status;
    }
    opened->largest = largest_of(opened->image);
    return put(&opening->content, which == PATH_MU ? PART_MU : PART_IMAGE, shared_create(opened, destroy_image, log));
}

/* --- data --- */

static lr_status bin_events(const struct opened_scanner *scanner, struct opened_data *opened, const lr_log *log)
{
    const lr_events_source source = {.path = opened->path, .log = log};
    lr_prompts_delayeds found;
    LR_TRY(lr_events_bin(&source, scanner->lors, &found, NULL));
    opened->are_events = true;
    opened->prompts = found.prompts;
    opened->delayeds = found.delayeds;
    return LR_OK;
}

static lr_status fill_data(const struct opened_scanner *scanner, struct opened_data *opened,
                           struct lr_watched_log *reason)
{
    const enum lr_file_kind kind = lr_file_kind_of(opened->path);
    if (kind == LR_FILE_EVENTS || kind == LR_FILE_PETSIRD) return bin_events(scanner, opened, &reason->log);
    opened->prompts = lr_lor_data_read(opened->path, scanner->lors, &reason->log);
    return opened->prompts != NULL ? LR_OK : reason->status;
}

static lr_status read_data(struct opening *opening, const lr_log *log)
{
    struct lr_watched_log reason;
    lr_log_watch(&reason, log);
    const struct opened_scanner *scanner = shared_object(opening->content.parts[PART_SCANNER]);
    if (scanner == NULL) {
        return lr_error(log, LR_USAGE, "%s counts along the LORs of a scanner: open that first",
                        opening->paths[PATH_DATA]);
    }
    struct opened_data *opened = lr_alloc(1, sizeof(*opened), "data", &reason.log);
    if (opened == NULL) return LR_FAILED;
    opened->path = lr_copy_string(opening->paths[PATH_DATA], &reason.log);
    const lr_status status = opened->path != NULL ? fill_data(scanner, opened, &reason) : reason.status;
    if (status != LR_OK) {
        destroy_data(opened);
        return status;
    }
    return put(&opening->content, PART_DATA, shared_create(opened, destroy_data, log));
}

/* --- all of it --- */

/* The file whose scanner is to be read; NULL = none. */
static const char *scanner_path(const struct opening *opening)
{
    const char *data = opening->paths[PATH_DATA];
    if (opening->paths[PATH_SCANNER] != NULL || data == NULL || opening->content.parts[PART_SCANNER] != NULL)
        return opening->paths[PATH_SCANNER];
    const bool is_header = lr_path_ends(data, ".hs");
    const enum lr_file_kind kind = lr_file_kind_of(data);
    return kind == LR_FILE_PETSIRD || (kind == LR_FILE_DATA && !is_header) ? data : NULL;
}

static lr_status examine(struct opening *opening, const lr_log *log)
{
    struct study_content *content = &opening->content;
    const struct opened_scanner *scanner = shared_object(content->parts[PART_SCANNER]);
    if (scanner == NULL) return LR_OK;
    lr_diagnosis *diagnosis = lr_scanner_examine(scanner->draft, &content->grid, log);
    return put(content, PART_DIAGNOSIS, shared_create(diagnosis, destroy_diagnosis, log));
}

static lr_status read_if_wished(struct opening *opening, enum study_path which, const lr_log *log,
                                const lr_progress *progress)
{
    static const char *const doing[] = {"reading the scanner", "reading the image", "reading the mu-map",
                                        "reading the data"};
    const char *path = which == PATH_SCANNER ? scanner_path(opening) : opening->paths[which];
    if (path == NULL) return LR_OK;
    LR_TRY(lr_progress_report(progress, doing[which], which, NUM_PATHS + 1));
    LR_TRY(which == PATH_SCANNER ? read_scanner(opening, path, log)
           : which == PATH_DATA  ? read_data(opening, log)
                                 : read_image(opening, which, log));
    study_content_settle_grid(&opening->content);
    return LR_OK;
}

lr_status opening_run(void *user, const lr_log *log, const lr_progress *progress)
{
    struct opening *opening = user;
    LR_TRY(read_if_wished(opening, PATH_SCANNER, log, progress));
    if (opening->grid.size[0] > 0) {
        LR_TRY(lr_grid_check(&opening->grid, log));
        opening->content.chosen = opening->grid;
        study_content_settle_grid(&opening->content);
    }
    for (enum study_path which = PATH_IMAGE; which < NUM_PATHS; which++)
        LR_TRY(read_if_wished(opening, which, log, progress));
    LR_TRY(lr_progress_report(progress, "examining the scanner", NUM_PATHS, NUM_PATHS + 1));
    LR_TRY(examine(opening, log));
    return lr_progress_report(progress, "opened", 1, 1);
}
