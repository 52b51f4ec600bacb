/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/study.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/vec.h"
#include "io/files/file_kind.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the default grid --- */

enum { ACROSS = 64, MOST_SLICES = 256 };

/* Fraction of the space between the faces that the grid fills. Near a face, elements grow without bound. */
static const double within = 0.98;

lr_grid study_default_grid(const lr_scanner *scanner)
{
    lr_grid grid = {.size = {1, 1, 1}};
    double middle_mm[3] = {0}, low_mm[3], high_mm[3], length_mm[3];
    for (int m = 0; m < scanner->num_modules; m++)
        vec_add_scaled(middle_mm, 1.0 / scanner->num_modules, scanner->modules[m].centre_mm, middle_mm);

    /* Finds the box around all faces, and the distance from the modules' mean centre to the nearest face's plane. */
    double radius_mm = HUGE_VAL;
    for (int k = 0; k < 3; k++) {
        low_mm[k] = HUGE_VAL;
        high_mm[k] = -HUGE_VAL;
    }
    for (int m = 0; m < scanner->num_modules; m++) {
        const lr_module *module = &scanner->modules[m];
        double to_middle[3];
        vec_sub(middle_mm, module->centre_mm, to_middle);
        radius_mm = fmin(radius_mm, fabs(vec_dot(module->normal, to_middle)));
        for (int k = 0; k < 3; k++) {
            const double half_mm = 0.5 * (fabs(module->u[k]) * module->crystals[0] * module->pitch_mm[0] +
                                          fabs(module->v[k]) * module->crystals[1] * module->pitch_mm[1]);
            low_mm[k] = fmin(low_mm[k], module->centre_mm[k] - half_mm);
            high_mm[k] = fmax(high_mm[k], module->centre_mm[k] + half_mm);
        }
    }

    /* Half the edge of the grid in x and y. If the scanner gives a field of view, the grid is the square around the
     * field of view. Otherwise the grid is the square in the circle with this radius, so that the corners do not reach
     * the modules. */
    radius_mm *= within;
    const double view_mm = scanner->coincidence.field_of_view_mm;
    const double half_mm = view_mm > 0 ? fmin(0.5 * view_mm, radius_mm) : radius_mm * sqrt(0.5);
    for (int k = 0; k < 3; k++) {
        if (k < 2) {
            low_mm[k] = fmax(low_mm[k], middle_mm[k] - half_mm);
            high_mm[k] = fmin(high_mm[k], middle_mm[k] + half_mm);
        }
        length_mm[k] = fmax(within * (high_mm[k] - low_mm[k]), 1e-3);
    }
    const double voxel_mm = fmax(length_mm[0], length_mm[1]) / ACROSS;
    for (int k = 0; k < 3; k++) {
        const int most = k < 2 ? ACROSS : MOST_SLICES;
        const double count = floor(length_mm[k] / voxel_mm + 0.5);
        grid.size[k] = count < 1 ? 1 : count > most ? most : (int)count;
        grid.voxel_mm[k] = length_mm[k] / grid.size[k];
        grid.origin_mm[k] = 0.5 * (low_mm[k] + high_mm[k]) - 0.5 * (grid.size[k] - 1) * grid.voxel_mm[k];
    }
    return grid;
}

/* --- opened files --- */

/* The contents of one file, as a part of the study. The contents never change; the last holder frees them. */
struct opened {
    atomic_int holders;
    char *path;
    lr_scanner *scanner;
    lr_lors *lors;
    lr_scanner_draft *draft;
    lr_diagnosis *diagnosis;
    lr_image *image;
    float largest;  /* value of the largest voxel */
    int num_frames; /* frames in the image's file; the path then ends with the frame number: "pet.nii:3" */
    lr_lor_data *prompts, *delayeds;
    bool are_events; /* the file is list mode */
};

/* Length of a frame number in a path, with colon and terminator. */
enum { FRAME_DIGITS = 16 };

/* A new part with one holder. path: NULL = no file. errors: NULL if memory runs out. */
static struct opened *create_opened(const char *path, const lr_log *log)
{
    struct opened *opened = lr_alloc(1, sizeof(*opened), "what is shown", log);
    if (opened == NULL) return NULL;
    atomic_init(&opened->holders, 1);
    if (path == NULL) return opened;
    opened->path = lr_alloc((int64_t)strlen(path) + FRAME_DIGITS, 1, "the name of a file", log);
    if (opened->path == NULL) {
        free(opened);
        return NULL;
    }
    memcpy(opened->path, path, strlen(path) + 1);
    return opened;
}

struct opened *opened_hold(struct opened *opened)
{
    if (opened != NULL) atomic_fetch_add(&opened->holders, 1);
    return opened;
}

void opened_release(struct opened *opened)
{
    if (opened == NULL || atomic_fetch_sub(&opened->holders, 1) != 1) return;
    lr_diagnosis_destroy(opened->diagnosis);
    lr_scanner_draft_destroy(opened->draft);
    lr_lors_destroy(opened->lors);
    lr_scanner_destroy(opened->scanner);
    lr_image_destroy(opened->image);
    lr_lor_data_destroy(opened->prompts);
    lr_lor_data_destroy(opened->delayeds);
    lr_free_all(opened->path, opened);
}

struct study_content {
    struct opened *parts[NUM_PARTS]; /* references are held */
    lr_grid grid;                    /* size 0: none */
    lr_grid chosen;                  /* the requested grid; size 0: none */
};

static void release_content(struct study_content *content)
{
    for (int k = 0; k < NUM_PARTS; k++) opened_release(content->parts[k]);
    *content = (struct study_content){0};
}

static void put_part(struct study_content *content, enum study_part part, struct opened *opened)
{
    opened_release(content->parts[part]);
    content->parts[part] = opened;
}

/* Sets the grid to the image's grid. Without an image, uses the requested grid; without a requested grid, the scanner's
 * default grid. */
static void settle_grid(struct study_content *content)
{
    const struct opened *image = content->parts[PART_IMAGE], *scanner = content->parts[PART_SCANNER];
    content->grid = (lr_grid){0};
    if (image != NULL)
        content->grid = image->image->grid;
    else if (content->chosen.size[0] > 0)
        content->grid = content->chosen;
    else if (scanner != NULL)
        content->grid = study_default_grid(scanner->scanner);
}

/* --- reading, on the thread of a job --- */

enum study_path { PATH_SCANNER = 0, PATH_IMAGE, PATH_MU, PATH_SECOND, PATH_DATA, NUM_PATHS };

/* A request to read files, and its result. */
struct opening {
    char *paths[NUM_PATHS];       /* owned; NULL = no change */
    lr_grid grid;                 /* size 0 = no change */
    struct study_content content; /* begins as a copy of the open content */
    lr_scanner_draft *refused;    /* owned: draft from an invalid scanner file, or NULL */
    lr_diagnosis *why;            /* owned: diagnosis of this draft */
};

static void finish_opening(struct opening *opening)
{
    for (int k = 0; k < NUM_PATHS; k++) free(opening->paths[k]);
    release_content(&opening->content);
    lr_scanner_draft_destroy(opening->refused);
    lr_diagnosis_destroy(opening->why);
    *opening = (struct opening){0};
}

static lr_status read_scanner(struct opening *opening, const char *path, const lr_log *log)
{
    struct study_content *content = &opening->content;
    struct lr_watched_log reason;
    lr_log_watch(&reason, log);
    struct opened *opened = create_opened(path, &reason.log);
    if (opened == NULL) return reason.status;
    const bool is_data = opening->paths[PATH_SCANNER] == NULL;
    if (is_data && lr_file_kind_of(path) == LR_FILE_DATA) {
        opened->scanner = lr_scanner_read_hdf5(path, &reason.log);
        opened->draft = opened->scanner != NULL ? lr_scanner_draft_create(opened->scanner, &reason.log) : NULL;
    } else {
        opened->draft = lr_scanner_draft_read(path, &reason.log);
        opened->scanner = opened->draft != NULL ? lr_scanner_read(path, &reason.log) : NULL;
    }
    opened->lors = opened->scanner != NULL ? lr_lors_create(opened->scanner, &reason.log) : NULL;
    if (opened->lors != NULL) {
        put_part(content, PART_DATA, NULL); /* the open counts belong to LORs of the old scanner */
        put_part(content, PART_SCANNER, opened);
        content->chosen = (lr_grid){0};
        return LR_OK;
    }

    /* If the file describes an impossible scanner, the findings of the geometry doctor are more useful than the
     * first error. */
    if (opened->draft != NULL) {
        opening->refused = opened->draft;
        opening->why = lr_scanner_examine(opened->draft, opening->grid.size[0] > 0 ? &opening->grid : NULL, NULL);
        opened->draft = NULL;
    }
    opened_release(opened);
    return reason.status;
}

/* Finds the smallest and the largest value among the voxels and 0. */
static void find_extremes(const lr_image *image, float *lowest, float *largest)
{
    *lowest = *largest = 0;
    for (int64_t v = 0; v < lr_grid_num_voxels(&image->grid); v++) {
        *lowest = image->values[v] < *lowest ? image->values[v] : *lowest;
        *largest = image->values[v] > *largest ? image->values[v] : *largest;
    }
}

/* Reads one of the images; a mu-map is converted to 1/mm. */
static lr_status read_image(struct opening *opening, enum study_path which, const lr_log *log)
{
    const char *path = opening->paths[which];
    const lr_grid *grid = &opening->content.grid;
    struct lr_watched_log reason;
    lr_log_watch(&reason, log);
    struct opened *opened = create_opened(path, &reason.log);
    char *file = opened != NULL ? lr_copy_string(path, &reason.log) : NULL;
    if (file == NULL) {
        opened_release(opened);
        return reason.status;
    }

    int frame = lr_path_cut_frame(file);
    opened->num_frames = lr_image_num_frames(file, NULL);
    frame = frame == 0 && opened->num_frames > 1 ? 1 : frame;
    if (frame > 0) {
        snprintf(opened->path, strlen(path) + FRAME_DIGITS, "%s:%d", file, frame);
        opened->image = lr_image_read_frame(file, frame, &reason.log);
    } else {
        opened->image = lr_image_read_on(opened->path, grid->size[0] > 0 ? grid : NULL, &reason.log);
    }
    free(file);

    /* The file of a mu-map may have the unit 1/mm, 1/cm or, for a CT scan, HU. Only HU have values far below 0. */
    lr_status status = opened->image != NULL ? LR_OK : LR_BAD_INPUT;
    float lowest = 0, before = 0;
    if (status == LR_OK) find_extremes(opened->image, &lowest, &before);
    opened->largest = before;
    if (status == LR_OK && which == PATH_MU) {
        const lr_mu_map_params params = {
            .unit = lowest < -100 ? LR_MU_HU : LR_MU_BY_VALUE, .name = opened->path, .log = &reason.log};
        status = lr_mu_map_settle(opened->image, &params);
        find_extremes(opened->image, &lowest, &opened->largest);
        if (status == LR_OK && opened->largest < before) {
            lr_warn(&reason.log, "%s: attenuation of at most %g taken as %s", opened->path, (double)before,
                    params.unit == LR_MU_HU ? "Hounsfield units: water has 0" : "1/cm: water has 0.096");
        }
    }
    if (status != LR_OK) {
        opened_release(opened);
        return reason.status;
    }
    static const enum study_part parts[] = {
        [PATH_IMAGE] = PART_IMAGE, [PATH_MU] = PART_MU, [PATH_SECOND] = PART_SECOND};
    put_part(&opening->content, parts[which], opened);
    return LR_OK;
}

static lr_status read_data(struct opening *opening, const lr_log *log)
{
    const char *path = opening->paths[PATH_DATA];
    const struct opened *scanner = opening->content.parts[PART_SCANNER];
    struct lr_watched_log reason;
    lr_log_watch(&reason, log);
    if (scanner == NULL) return lr_error(log, LR_USAGE, "%s counts along the LORs of a scanner: open that first", path);
    struct opened *opened = create_opened(path, &reason.log);
    if (opened == NULL) return reason.status;
    const enum lr_file_kind kind = lr_file_kind_of(path);
    lr_status status = LR_OK;
    if (kind == LR_FILE_EVENTS || kind == LR_FILE_PETSIRD) {
        const lr_events_source source = {.path = path, .log = &reason.log};
        lr_prompts_delayeds found = {0};
        status = lr_events_bin(&source, scanner->lors, &found, NULL);
        opened->are_events = true;
        opened->prompts = status == LR_OK ? found.prompts : NULL;
        opened->delayeds = status == LR_OK ? found.delayeds : NULL;
    } else {
        opened->prompts = lr_lor_data_read(path, scanner->lors, &reason.log);
        status = opened->prompts != NULL ? LR_OK : reason.status;
    }
    if (status != LR_OK)
        opened_release(opened);
    else
        put_part(&opening->content, PART_DATA, opened);
    return status;
}

/* Reads all files into the opening's content; serves as job_params.run. user: the opening. */
static lr_status run_opening(void *user, const lr_log *log, const lr_progress *progress)
{
    struct opening *opening = user;
    static const char *const doing[] = {"reading the scanner", "reading the image", "reading the mu-map",
                                        "reading the second image", "reading the data"};
    struct study_content *content = &opening->content;

    /* A data file may describe its scanner, which is read if no other scanner is given. */
    const char *data = opening->paths[PATH_DATA], *scanner_path = opening->paths[PATH_SCANNER];
    if (scanner_path == NULL && data != NULL && content->parts[PART_SCANNER] == NULL) {
        const enum lr_file_kind kind = lr_file_kind_of(data);
        const bool has_scanner = kind == LR_FILE_PETSIRD || (kind == LR_FILE_DATA && !lr_path_ends(data, ".hs"));
        scanner_path = has_scanner ? data : NULL;
    }
    for (enum study_path which = PATH_SCANNER; which < NUM_PATHS; which++) {
        if (which == PATH_IMAGE && opening->grid.size[0] > 0) {
            LR_TRY(lr_grid_check(&opening->grid, log));
            content->chosen = opening->grid;
            settle_grid(content);
        }
        if ((which == PATH_SCANNER ? scanner_path : opening->paths[which]) == NULL) continue;
        LR_TRY(lr_progress_report(progress, doing[which], which, NUM_PATHS + 1));
        LR_TRY(which == PATH_SCANNER ? read_scanner(opening, scanner_path, log)
               : which == PATH_DATA  ? read_data(opening, log)
                                     : read_image(opening, which, log));
        settle_grid(content);
    }

    LR_TRY(lr_progress_report(progress, "examining the scanner", NUM_PATHS, NUM_PATHS + 1));
    const struct opened *scanner = content->parts[PART_SCANNER];
    if (scanner != NULL) {
        struct opened *opened = create_opened(NULL, log);
        if (opened == NULL) return LR_FAILED;
        opened->diagnosis = lr_scanner_examine(scanner->draft, &content->grid, log);
        if (opened->diagnosis == NULL) {
            opened_release(opened);
            return LR_FAILED;
        }
        put_part(content, PART_DIAGNOSIS, opened);
    }
    return lr_progress_report(progress, "opened", 1, 1);
}

/* --- the study --- */

struct study {
    struct study_content content;
    int64_t serial, endings;
    struct job job;
    struct opening opening; /* used only by the job while it runs */
    struct opening next;    /* the next opening; only its paths and grid are set */
    bool has_next;
    bool is_taken; /* the last job's result has been taken over */
    lr_scanner_draft *refused;
    lr_diagnosis *why;
    struct job_report report; /* report of the last opening */
};

struct study *study_create(const lr_log *log)
{
    struct study *study = lr_alloc(1, sizeof(*study), "a study", log);
    if (study != NULL) {
        job_init(&study->job);
        study->is_taken = true;
    }
    return study;
}

static void forget_refused(struct study *study)
{
    lr_scanner_draft_destroy(study->refused);
    lr_diagnosis_destroy(study->why);
    study->refused = NULL;
    study->why = NULL;
}

void study_destroy(struct study *study)
{
    if (study == NULL) return;
    job_finish(&study->job);
    finish_opening(&study->opening);
    finish_opening(&study->next);
    release_content(&study->content);
    forget_refused(study);
    free(study);
}

/* --- opening --- */

/* Reports the reason why an opening could not begin. */
static lr_status fail(struct study *study, lr_status status, const char *sentence)
{
    study->report = (struct job_report){.state = JOB_FAILED, .status = status};
    study->endings++;
    snprintf(study->report.error, sizeof(study->report.error), "%s", sentence);
    return status;
}

static lr_status start_next(struct study *study)
{
    finish_opening(&study->opening);
    study->opening = study->next;
    study->next = (struct opening){0};
    study->has_next = false;
    study->opening.content = study->content;
    for (int k = 0; k < NUM_PARTS; k++) (void)opened_hold(study->content.parts[k]);
    study->is_taken = false;
    const struct job_params params = {run_opening, &study->opening, "opening"};
    return job_start(&study->job, &params);
}

lr_status study_open(struct study *study, const struct study_wish *wish)
{
    const char *const texts[NUM_PATHS] = {wish->scanner, wish->image, wish->mu, wish->second, wish->data};
    for (int k = 0; k < NUM_PATHS; k++) {
        char *copy = lr_copy_string(texts[k], NULL);
        if (texts[k] != NULL && copy == NULL) return fail(study, LR_FAILED, "no memory for the name of a file");
        if (copy != NULL) {
            free(study->next.paths[k]);
            study->next.paths[k] = copy;
        }
    }
    if (wish->grid != NULL) study->next.grid = *wish->grid;
    study->has_next = true;

    if (job_poll(&study->job) == JOB_RUNNING) { /* the job is cancelled if the new request replaces all its files */
        bool is_superseded = true;
        for (int k = 0; k < NUM_PATHS; k++)
            is_superseded = is_superseded && (study->opening.paths[k] == NULL || study->next.paths[k] != NULL);
        if (is_superseded) job_cancel(&study->job);
        return LR_OK;
    }
    return study->is_taken ? start_next(study) : LR_OK; /* otherwise the opening starts after the next poll */
}

lr_status study_open_file(struct study *study, const char *path)
{
    const enum lr_file_kind kind = lr_file_kind_of(path);
    switch (kind) {
    case LR_FILE_SCANNER: return study_open(study, &(struct study_wish){.scanner = path});
    case LR_FILE_IMAGE: return study_open(study, &(struct study_wish){.image = path});
    case LR_FILE_DATA:
    case LR_FILE_EVENTS:
    case LR_FILE_PETSIRD: return study_open(study, &(struct study_wish){.data = path});
    default: break;
    }
    char message[JOB_SENTENCE];
    snprintf(message, sizeof(message),
             kind == LR_FILE_SESSION ? "%s is a session: open it as one"
                                     : "%s is no scanner, image, data or list-mode file that is known by its ending or "
                                       "how it begins",
             path);
    return fail(study, LR_USAGE, message);
}

enum job_state study_poll(struct study *study, struct job_report *report)
{
    if (study->is_taken && study->has_next) (void)start_next(study); /* an error is in the job's report */
    const enum job_state state = job_poll(&study->job);
    if (!study->is_taken) {
        job_get_report(&study->job, &study->report);
        study->report.state = state;
        if (state != JOB_RUNNING) {
            forget_refused(study);
            if (state == JOB_DONE) {
                release_content(&study->content);
                study->content = study->opening.content;
                study->opening.content = (struct study_content){0};
                study->serial++;
            } else {
                study->refused = study->opening.refused;
                study->why = study->opening.why;
                study->opening.refused = NULL;
                study->opening.why = NULL;
            }
            finish_opening(&study->opening);
            study->is_taken = true;
            study->endings++;
        }
    }
    if (report != NULL) *report = study->report;
    return study->report.state;
}

bool study_is_busy(const struct study *study)
{
    return study->has_next || !study->is_taken;
}

void study_cancel(struct study *study)
{
    finish_opening(&study->next);
    study->has_next = false;
    job_cancel(&study->job);
}

struct study_wish study_awaited(const struct study *study)
{
    struct study_view view = study_take(study);
    const char *paths[NUM_PATHS] = {view.scanner_path, view.image_path, view.mu_path, view.second_path, view.data_path};
    study_view_release(&view); /* the study still holds the parts */
    const struct opening *openings[2] = {study->is_taken ? NULL : &study->opening,
                                         study->has_next ? &study->next : NULL};
    for (int n = 0; n < 2; n++) {
        if (openings[n] == NULL) continue;
        if (openings[n]->paths[PATH_SCANNER] != NULL) paths[PATH_DATA] = NULL; /* data of the old scanner are closed */
        for (int k = 0; k < NUM_PATHS; k++)
            if (openings[n]->paths[k] != NULL) paths[k] = openings[n]->paths[k];
    }
    return (struct study_wish){.scanner = paths[PATH_SCANNER],
                               .image = paths[PATH_IMAGE],
                               .mu = paths[PATH_MU],
                               .second = paths[PATH_SECOND],
                               .data = paths[PATH_DATA]};
}

/* --- views --- */

lr_status study_check_module(const struct study_view *study, int module, const lr_log *log)
{
    if (study->scanner == NULL) return lr_error(log, LR_USAGE, "there is no scanner: open one first");
    if (module >= 0 && module < study->scanner->num_modules) return LR_OK;
    return lr_error(log, LR_USAGE, "module %d does not exist: the scanner has modules 0 to %d", module,
                    study->scanner->num_modules - 1);
}

struct study_view study_take(const struct study *study)
{
    static const struct opened nothing = {0};
    const struct opened *parts[NUM_PARTS];
    for (int k = 0; k < NUM_PARTS; k++) {
        const struct opened *part = opened_hold(study->content.parts[k]);
        parts[k] = part != NULL ? part : &nothing;
    }
    struct study_view view = {.serial = study->serial,
                              .endings = study->endings,
                              .grid = study->content.grid,
                              .scanner = parts[PART_SCANNER]->scanner,
                              .lors = parts[PART_SCANNER]->lors,
                              .diagnosis = parts[PART_DIAGNOSIS]->diagnosis,
                              .image = parts[PART_IMAGE]->image,
                              .mu = parts[PART_MU]->image,
                              .second = parts[PART_SECOND]->image,
                              .image_largest = (double)parts[PART_IMAGE]->largest,
                              .mu_largest = (double)parts[PART_MU]->largest,
                              .second_largest = (double)parts[PART_SECOND]->largest,
                              .data = parts[PART_DATA]->prompts,
                              .delayeds = parts[PART_DATA]->delayeds,
                              .num_frames = parts[PART_IMAGE]->num_frames,
                              .data_are_events = parts[PART_DATA]->are_events,
                              .scanner_path = parts[PART_SCANNER]->path,
                              .image_path = parts[PART_IMAGE]->path,
                              .mu_path = parts[PART_MU]->path,
                              .second_path = parts[PART_SECOND]->path,
                              .data_path = parts[PART_DATA]->path};
    memcpy(view.held, study->content.parts, sizeof(view.held));
    return view;
}

struct study_view study_view_hold(const struct study_view *view)
{
    for (int k = 0; k < NUM_PARTS; k++) (void)opened_hold(view->held[k]);
    return *view;
}

void study_view_release(struct study_view *view)
{
    for (int k = 0; k < NUM_PARTS; k++) opened_release(view->held[k]);
    *view = (struct study_view){0};
}

const lr_diagnosis *study_refused(const struct study *study, const lr_scanner_draft **draft)
{
    if (draft != NULL) *draft = study->refused;
    return study->why;
}
