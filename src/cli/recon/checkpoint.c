/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "cli/recon/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line of text that grows part by part. */
struct key {
    char *text;
    size_t used;
};

static void add(struct key *key, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    const int length = vsnprintf(key->text + key->used, LR_CHECKPOINT_KEY - key->used, format, words);
    va_end(words);
    const size_t room = LR_CHECKPOINT_KEY - 1 - key->used;
    key->used += length >= 0 && (size_t)length < room ? (size_t)length : room;
}

static void add_contents(struct key *key, const char *what, uint64_t digest)
{
    add(key, "; %s, contents %016llx", what, (unsigned long long)digest);
}

/* Describes everything that determines the image: model, algorithm and measurement. The contents of files are included
 * as digests, because a file may change before a run is resumed. */
static void describe(const struct recon_checkpoint *checkpoint, char text[LR_CHECKPOINT_KEY])
{
    const struct measurement *measured = checkpoint->measured;
    const struct recon_request *request = measured->request;
    const struct setup *setup = &measured->setup;
    const lr_scanner *scanner = setup->scanner;
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    const lr_grid *grid = &setup->grid;
    const float *efficiencies = setup->factors.efficiencies;
    const lr_rdp *prior = &request->prior;
    const int subsets = measured->subsets;
    struct key whole = {.text = text}, *key = &whole;
    uint64_t digest = 0;
    text[0] = '\0';
    add(key, "operator %s; scanner %.200s", recon_families[request->family], scanner != NULL ? scanner->name : "none");
    add(key, "; grid %d,%d,%d of %.15g,%.15g,%.15g mm at %.15g,%.15g,%.15g", grid->size[0], grid->size[1],
        grid->size[2], grid->voxel_mm[0], grid->voxel_mm[1], grid->voxel_mm[2], grid->origin_mm[0], grid->origin_mm[1],
        grid->origin_mm[2]);
    add(key, "; backend %s, mode %s, rays %d, samples %d,%d,%d, steps of attenuation %d", info->backend,
        info->mode == LR_MODE_EXACT ? "exact" : "sampled", info->rays, info->samples[0], info->samples[1],
        info->samples[2], info->mu_steps);
    if (info->penetration) add(key, "; penetration");
    if (measured->kind->describe != NULL) {
        char kernel[512];
        (void)measured->kind->describe(measured, kernel, sizeof(kernel));
        add(key, "%s", kernel);
    }
    if (scanner != NULL) add_contents(key, "geometry", recon_digest_scanner(scanner));
    if (scanner != NULL && efficiencies != NULL) {
        add_contents(key, "efficiencies",
                     recon_digest(0, efficiencies, scanner->num_crystals * (int64_t)sizeof(*efficiencies)));
    }
    if (setup->mu != NULL) {
        add_contents(key, request->mu_as == MU_LINES ? "attenuation along lines" : "attenuation as factors",
                     recon_digest_image(setup->mu));
    }
    if (measured->kappa != NULL) add_contents(key, "the prior's weights", recon_digest_image(measured->kappa));
    if (measured->beside != 0) add_contents(key, "what is known beside events", measured->beside);
    add(key, "; efficiencies %s; attenuation %s; randoms %s", request->efficiencies != NULL ? "yes" : "none",
        setup->mu != NULL ? "yes" : "none", measured->randoms != NULL ? "yes" : "none");

    add(key, "; algorithm %s; subsets %d; relaxation %.9g falling by %.9g", recon_algorithms[request->algorithm],
        subsets, recon_relaxation(request, subsets), request->relaxation_fall);
    if (request->views_per_block > 0) add(key, "; views per block %d", request->views_per_block);
    if (request->algorithm == RECON_RAMLA) add(key, "; steps %s", request->own_steps ? "own" : "common");
    add(key, "; prior %s %.9g %.9g %.9g; resolution %.9g,%.9g,%.9g mm", request->has_prior ? "rdp" : "none",
        prior->beta, prior->gamma, prior->epsilon, request->psf_mm[0], request->psf_mm[1], request->psf_mm[2]);
    add(key, "; combine %s", recon_schemes[request->combine]);
    if (request->combine != RECON_EXACT) add(key, ", local iterations %d", request->local_iterations);
    add(key, "; begun after %d iterations", checkpoint->begun_after);
    if (request->bootstraps) add(key, "; bootstrap replicate %llu", (unsigned long long)request->bootstrap_seed);

    for (int k = 0; k < request->num_intervals; k++)
        digest = recon_digest(digest, &request->intervals[k], sizeof(request->intervals[k]));
    if (request->num_intervals > 0) {
        add(key, "; %d frames, part %lld of %lld, contents %016llx", request->num_intervals,
            (long long)request->part[0], (long long)request->part[1], (unsigned long long)digest);
    }
    add(key, "; measurement, contents %016llx", (unsigned long long)measured->digest);
}

/* Turns the errors of a checkpoint into warnings. Only the first warning is printed, until a checkpoint has been
 * written again. */
static void demote(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct recon_checkpoint *checkpoint = user;
    struct report *report = checkpoint->measured->setup.report;
    if (level != LR_LOG_ERROR) {
        report->log.write(report, level, status, sentence);
    } else if (!checkpoint->is_lacking) {
        report_warn(report,
                    "%s: no checkpoint of iteration %d: the run goes on, and tries again when the next one is due",
                    sentence, checkpoint->saved);
        checkpoint->is_lacking = true;
    }
}

lr_status checkpoint_save(struct recon_checkpoint *checkpoint, lr_checkpoint *file, const lr_vector *const *images,
                          int count)
{
    const struct measurement *measured = checkpoint->measured;
    const struct recon_request *request = measured->request;
    const int every = request->checkpoint_every;
    const lr_log log = {demote, checkpoint};
    /* A checkpoint is due every `every` iterations. A checkpoint that was missed is due at the next chance. */
    if (request->checkpoint == NULL || (images != NULL && file->iterations / every <= checkpoint->saved / every))
        return LR_OK;
    if (measured->cluster.rank != 0) {
        checkpoint->saved = file->iterations;
        return LR_OK;
    }
    lr_status status = LR_OK;
    float *copies = NULL;
    if (images != NULL) {
        file->num_images = count;
        file->num_values = images[0]->count;
        file->images = copies = malloc((size_t)(count * file->num_values) * sizeof(*copies));
        if (copies == NULL) status = report_error(measured->setup.report, LR_FAILED, "no memory for a checkpoint");
        for (int k = 0; status == LR_OK && k < count; k++) {
            lr_vector to = lr_vector_of_floats(copies + k * file->num_values, file->num_values);
            status = lr_vector_copy(images[k], &to);
        }
    }
    if (status == LR_OK) {
        checkpoint->saved = file->iterations;
        file->grid = measured->setup.grid;
        file->ranks = measured->cluster.size;
        file->frame = request->num_intervals > 0 ? measured->frame + 1 : 0;
        describe(checkpoint, file->key);
        if (lr_checkpoint_write(request->checkpoint, file, &log) == LR_OK) checkpoint->is_lacking = false;
    }
    free(copies);
    return status;
}

static lr_status refuse(const struct recon_checkpoint *checkpoint, const char *why)
{
    const struct measurement *measured = checkpoint->measured;
    return report_error(measured->setup.report, LR_BAD_INPUT, "%s: %s: it is damaged: begin anew without --resume",
                        measured->request->checkpoint, why);
}

/* Finds out if the checkpoint exists. It is an error if only some ranks have it. */
static lr_status find_file(const struct measurement *measured, bool *is_there)
{
    const bool own = access(measured->request->checkpoint, F_OK) == 0;
    CLI_TRY(lr_comm_same(measured->cluster.comm, "view of the checkpoint", own ? "the file is there" : "no such file"));
    *is_there = own;
    return LR_OK;
}

lr_status checkpoint_resume(struct recon_checkpoint *checkpoint, int *iterations, int *iterations_before)
{
    const struct measurement *measured = checkpoint->measured;
    const struct recon_request *request = measured->request;
    struct report *report = measured->setup.report;
    lr_checkpoint *read = &checkpoint->read;
    bool is_there = false;
    if (!checkpoint->resumes) return LR_OK;
    checkpoint->resumes = false; /* the next frames begin with their first iteration */
    CLI_TRY(find_file(measured, &is_there));
    if (!is_there) {
        report_info(report, "%s is not there: begins with the first iteration", request->checkpoint);
        return LR_OK;
    }
    char key[LR_CHECKPOINT_KEY];
    describe(checkpoint, key);
    CLI_TRY(lr_checkpoint_read(request->checkpoint, key, read, &report->log));
    const int64_t num_values = read->num_images * read->num_values;
    CLI_TRY(measurement_compare_numbers(
        measured, "checkpoint", recon_digest(0, read->images, num_values * (int64_t)sizeof(float)), num_values));

    /* The number of images from which a run resumes, for each scheme. */
    const int num_images[] = {[RECON_EXACT] = 1, [RECON_PAPER] = read->ranks, [RECON_DISTRIBUTED] = 2};
    if (request->combine == RECON_PAPER && read->ranks != measured->cluster.size) {
        return report_error(report, LR_USAGE,
                            "%s has the guesses of %d ranks, and a guess belongs to its rank's share of the data: "
                            "start %d ranks and not %d, or begin anew without --resume",
                            request->checkpoint, read->ranks, read->ranks, measured->cluster.size);
    }
    if (read->num_images != num_images[request->combine])
        return refuse(checkpoint, "it has another number of images than the scheme goes on from");
    if (read->num_values != lr_operator_get_info(measured->setup.op)->num_voxels)
        return refuse(checkpoint, "its images have another size than the operator's");

    const int made = read->iterations - checkpoint->begun_after;
    if (made < 1) return refuse(checkpoint, "it has fewer iterations than --after");
    if (made > *iterations) {
        return report_error(report, LR_USAGE,
                            "%s has %d iterations already, and %d are asked for: ask for as many, or "
                            "leave out --resume",
                            request->checkpoint, made, *iterations);
    }
    *iterations -= made;
    *iterations_before = read->iterations;
    checkpoint->saved = read->iterations;
    checkpoint->start =
        read->images + (request->combine == RECON_PAPER ? measured->cluster.rank : 0) * read->num_values;

    const bool is_other = request->combine == RECON_DISTRIBUTED && read->ranks != measured->cluster.size;
    char frame[32] = "";
    if (read->frame > 0) snprintf(frame, sizeof(frame), " of frame %d", read->frame);
    report_info(report, "%s: goes on after iteration %d%s, of %d rank%s%s", request->checkpoint, read->iterations,
                frame, read->ranks, read->ranks == 1 ? "" : "s",
                is_other ? "; local iterations of another number of ranks take another way to the same image" : "");
    return LR_OK;
}

lr_status checkpoint_find_frame(const struct recon_checkpoint *checkpoint, const struct recon_frame *frames,
                                int64_t *first)
{
    const struct measurement *measured = checkpoint->measured;
    const char *path = measured->request->checkpoint;
    const int64_t *range = measured->frame_range;
    lr_checkpoint read;
    bool is_there = false;
    *first = range[0];
    CLI_TRY(checkpoint->resumes ? find_file(measured, &is_there) : LR_OK);
    if (!is_there) return LR_OK;
    CLI_TRY(lr_checkpoint_read(path, NULL, &read, &measured->setup.report->log));
    const int frame = read.frame - 1;
    lr_checkpoint_finish(&read);
    if (frame < 0) return LR_OK; /* a checkpoint without frames; checkpoint_resume compares its key */
    if (frame < range[0] || frame >= range[1]) {
        return report_error(measured->setup.report, LR_USAGE,
                            "%s belongs to frame %d, which this run does not have: give the same "
                            "--frames and --part, or begin anew without --resume",
                            path, frame + 1);
    }

    /* The images of earlier frames must exist. */
    for (int64_t k = range[0]; k < frame && measured->cluster.rank == 0; k++) {
        if (access(frames[k].output, F_OK) != 0) {
            return report_error(measured->setup.report, LR_BAD_INPUT,
                                "%s belongs to frame %d, and the image of frame %lld, %s, is missing: "
                                "put it back, or begin anew without --resume",
                                path, frame + 1, (long long)k + 1, frames[k].output);
        }
    }
    *first = frame;
    return LR_OK;
}

void checkpoint_forget(struct recon_checkpoint *checkpoint)
{
    lr_checkpoint_finish(&checkpoint->read);
    checkpoint->start = NULL;
    checkpoint->saved = checkpoint->begun_after;
}
