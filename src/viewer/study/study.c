/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "viewer/study/study.h"

#include "base/log.h"
#include "base/mem.h"
#include "io/files/file_kind.h"
#include "viewer/study/opening.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct study {
    struct study_content content;
    int64_t serial, endings;
    struct job job;
    struct opening opening; /* the job's while it runs */
    struct opening next;    /* paths and grid alone: what to open after that */
    bool has_next;
    bool is_taken; /* what the last job gave has been put in place */
    lr_scanner_draft *refused;
    lr_diagnosis *why;
    struct job_report report; /* of the last opening */
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
    opening_finish(&study->opening);
    opening_finish(&study->next);
    study_content_release(&study->content);
    forget_refused(study);
    free(study);
}

/* --- opening --- */

/* Why nothing was begun. */
static lr_status fail(struct study *study, lr_status status, const char *sentence)
{
    study->report = (struct job_report){.state = JOB_FAILED, .status = status};
    study->endings++;
    snprintf(study->report.error, sizeof(study->report.error), "%s", sentence);
    return status;
}

/* Adds a wish to what is to be opened next. */
static lr_status add_wish(struct study *study, const struct study_wish *wish)
{
    const char *const texts[NUM_PATHS] = {wish->scanner, wish->image, wish->mu, wish->data};
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
    return LR_OK;
}

static lr_status start_next(struct study *study)
{
    opening_finish(&study->opening);
    study->opening = study->next;
    study->next = (struct opening){0};
    study->has_next = false;
    study->opening.content = study_content_hold(&study->content);
    study->is_taken = false;
    const struct job_params params = {opening_run, &study->opening, "opening"};
    return job_start(&study->job, &params);
}

/* Whether what is being opened would be replaced by what is to be opened next. */
static bool is_superseded(const struct study *study)
{
    bool all = true;
    for (int k = 0; k < NUM_PATHS; k++) all = all && (study->opening.paths[k] == NULL || study->next.paths[k] != NULL);
    return all;
}

lr_status study_open(struct study *study, const struct study_wish *wish)
{
    LR_TRY(add_wish(study, wish));
    if (job_poll(&study->job) == JOB_RUNNING) {
        if (is_superseded(study)) job_cancel(&study->job);
        return LR_OK;
    }
    return study->is_taken ? start_next(study) : LR_OK; /* else after the next poll */
}

lr_status study_open_file(struct study *study, const char *path)
{
    char sentence[JOB_SENTENCE];
    struct study_wish wish = {0};
    switch (lr_file_kind_of(path)) {
    case LR_FILE_SCANNER: wish.scanner = path; break;
    case LR_FILE_IMAGE: wish.image = path; break;
    case LR_FILE_DATA:
    case LR_FILE_EVENTS:
    case LR_FILE_PETSIRD: wish.data = path; break;
    case LR_FILE_SESSION:
        snprintf(sentence, sizeof(sentence), "%s is a session: open it as one", path);
        return fail(study, LR_USAGE, sentence);
    default:
        snprintf(sentence, sizeof(sentence),
                 "%s is no scanner, image, data or list-mode file that is known by its ending or "
                 "how it begins",
                 path);
        return fail(study, LR_USAGE, sentence);
    }
    return study_open(study, &wish);
}

static void take_opened(struct study *study, enum job_state state)
{
    forget_refused(study);
    if (state == JOB_DONE) {
        study_content_release(&study->content);
        study->content = study->opening.content;
        study->opening.content = (struct study_content){0};
        study->serial++;
    } else {
        study->refused = study->opening.refused;
        study->why = study->opening.why;
        study->opening.refused = NULL;
        study->opening.why = NULL;
    }
    opening_finish(&study->opening);
    study->is_taken = true;
    study->endings++;
}

enum job_state study_poll(struct study *study, struct job_report *report)
{
    if (study->is_taken && study->has_next) (void)start_next(study); /* the job's report says what fails */
    const enum job_state state = job_poll(&study->job);
    if (!study->is_taken) {
        job_get_report(&study->job, &study->report);
        study->report.state = state;
        if (state != JOB_RUNNING) take_opened(study, state);
    }
    if (report != NULL) *report = study->report;
    return study->report.state;
}

enum job_state study_wait(struct study *study, struct job_report *report)
{
    do {
        (void)study_poll(study, report);
        (void)job_wait(&study->job);
    } while (study_poll(study, report) == JOB_RUNNING || study->has_next);
    return study->report.state;
}

int64_t study_endings(const struct study *study)
{
    return study->endings;
}

bool study_is_busy(const struct study *study)
{
    return study->has_next || !study->is_taken;
}

void study_cancel(struct study *study)
{
    opening_finish(&study->next);
    study->has_next = false;
    job_cancel(&study->job);
}

/* What an opening changes, where it succeeds. */
static void await(const struct opening *opening, const char *paths[NUM_PATHS])
{
    if (opening->paths[PATH_SCANNER] != NULL) paths[PATH_DATA] = NULL; /* counted by the old scanner */
    for (int k = 0; k < NUM_PATHS; k++)
        if (opening->paths[k] != NULL) paths[k] = opening->paths[k];
}

struct study_wish study_awaited(const struct study *study)
{
    struct study_view view = study_take(study);
    const char *paths[NUM_PATHS] = {view.scanner_path, view.image_path, view.mu_path, view.data_path};
    study_view_release(&view); /* the study holds them, too */
    if (!study->is_taken) await(&study->opening, paths);
    if (study->has_next) await(&study->next, paths);
    return (struct study_wish){paths[PATH_SCANNER], paths[PATH_IMAGE], paths[PATH_MU], paths[PATH_DATA], NULL};
}

static void drop(struct study_content *content, enum study_part part)
{
    shared_release(content->parts[part]);
    content->parts[part] = NULL;
}

void study_close(struct study *study, struct study_parts parts)
{
    if (parts.image) drop(&study->content, PART_IMAGE);
    if (parts.mu) drop(&study->content, PART_MU);
    if (parts.data) drop(&study->content, PART_DATA);
    study_content_settle_grid(&study->content);
    study->serial++;
}

/* --- looking --- */

/* The plain fields of what is held. */
static void fill_view(struct study_view *view)
{
    const struct opened_scanner *scanner = shared_object(view->held[PART_SCANNER]);
    const struct opened_image *image = shared_object(view->held[PART_IMAGE]);
    const struct opened_image *mu = shared_object(view->held[PART_MU]);
    const struct opened_data *data = shared_object(view->held[PART_DATA]);
    view->diagnosis = shared_object(view->held[PART_DIAGNOSIS]);
    if (scanner != NULL) {
        view->scanner = scanner->scanner;
        view->lors = scanner->lors;
        view->scanner_path = scanner->path;
    }
    if (image != NULL) {
        view->image = image->image;
        view->image_largest = (double)image->largest;
        view->image_path = image->path;
        view->num_frames = image->num_frames;
    }
    if (mu != NULL) {
        view->mu = mu->image;
        view->mu_largest = (double)mu->largest;
        view->mu_path = mu->path;
    }
    if (data != NULL) {
        view->data = data->prompts;
        view->delayeds = data->delayeds;
        view->data_are_events = data->are_events;
        view->data_path = data->path;
    }
}

struct study_view study_take(const struct study *study)
{
    struct study_view view = {.serial = study->serial, .grid = study->content.grid};
    for (int k = 0; k < NUM_PARTS; k++) view.held[k] = shared_hold(study->content.parts[k]);
    fill_view(&view);
    return view;
}

struct study_view study_view_hold(const struct study_view *view)
{
    for (int k = 0; k < NUM_PARTS; k++) (void)shared_hold(view->held[k]);
    return *view;
}

void study_view_release(struct study_view *view)
{
    for (int k = 0; k < NUM_PARTS; k++) shared_release(view->held[k]);
    *view = (struct study_view){0};
}

const lr_diagnosis *study_refused(const struct study *study, const lr_scanner_draft **draft)
{
    if (draft != NULL) *draft = study->refused;
    return study->why;
}

int study_findings(const lr_diagnosis *diagnosis, int module, const lr_finding **findings, int capacity)
{
    int count = 0;
    for (int k = 0; diagnosis != NULL && k < diagnosis->num_findings; k++) {
        const lr_finding *finding = &diagnosis->findings[k];
        if (module < 0 || (finding->modules[0] != module && finding->modules[1] != module)) continue;
        if (count < capacity) findings[count] = finding;
        count++;
    }
    return count;
}
