/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --checkpoint: what is needed to go on after the machine has failed. */
#include "recon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct cli_option recon_checkpoint_options[] = {
    {"--checkpoint", "FILE", "what is needed to go on (HDF5), renewed after some iterations",
     false},
    {"--checkpoint-every", "K", "iterations; default 1", false},
    {"--resume", NULL, "go on from that file, where it is there, with any number of ranks", false},
    {0},
};

void recon_read_checkpoint(struct cli_args *args, struct recon_request *request)
{
    static const int64_t range[2] = {1, 1000000};
    request->checkpoint = args_text(args, "--checkpoint");
    request->checkpoint_every = (int)args_int(args, "--checkpoint-every", 1, range);
    request->resumes = args_has(args, "--resume");
    if (request->checkpoint == NULL) {
        if (request->resumes || args_has(args, "--checkpoint-every")) {
            args_complain(args, "--resume and --checkpoint-every need --checkpoint FILE");
        }
        return;
    }
    if (request->combine != RECON_EXACT) {
        args_complain(args, "--checkpoint belongs to --combine exact: guesses and steps of ranks "
                            "are not in it");
    }
    if (args_has(args, "--frames") || args_has(args, "--blobs")) {
        args_complain(args, "--checkpoint holds one image of voxels: leave out --frames and "
                            "--blobs");
    }
}

/* --- what must stay the same --- */

/* Fowler, Noll and Vo's, of 64 bits. */
uint64_t recon_digest(uint64_t digest, const void *bytes, int64_t count)
{
    digest = digest != 0 ? digest : UINT64_C(0xcbf29ce484222325);
    for (int64_t k = 0; k < count; k++) {
        digest = (digest ^ ((const unsigned char *)bytes)[k]) * UINT64_C(0x100000001b3);
    }
    return digest;
}

void recon_digest_event(uint64_t *digest, const lr_event *event)
{
    unsigned char bytes[sizeof(event->crystals) + sizeof(event->tof_mm) + sizeof(event->weight)];
    memcpy(bytes, event->crystals, sizeof(event->crystals));
    memcpy(bytes + sizeof(event->crystals), &event->tof_mm, sizeof(event->tof_mm));
    memcpy(bytes + sizeof(event->crystals) + sizeof(event->tof_mm), &event->weight,
           sizeof(event->weight));
    *digest = recon_digest(*digest, bytes, sizeof(bytes));
}

/* What the model of a family has beside. */
static void describe_family(const struct recon *recon, char *text, size_t room)
{
    const lr_listmode_info *events = lr_listmode_get_info(recon->setup.op);
    const lr_resolution *resolution = &recon->direct.kernel.resolution;
    if (events != NULL) {
        snprintf(text, room, ", kernel %d %.9g %.9g, times of flight %d", (int)events->kernel,
                 events->tube.width_mm, events->tube.fwhm_mm, recon->frames.has_tof);
    } else if (recon->request.family == RECON_DIRECT) {
        snprintf(text, room, ", kernel %.9g %d %.9g %.9g, factors %d", resolution->tof_ps,
                 (int)resolution->model, resolution->radial_mm, resolution->axial_mm,
                 recon->direct_factors != NULL);
    }
}

static void describe(const struct recon *recon, char text[LR_CHECKPOINT_SETTINGS])
{
    const struct recon_request *request = &recon->request;
    const lr_operator_info *info = lr_operator_get_info(recon->setup.op);
    const lr_rdp *prior = &request->prior;
    snprintf(text, LR_CHECKPOINT_SETTINGS,
             "family %d, scanner %.200s, backend %s, mode %d, rays %d, samples %d %d %d, mu steps "
             "%d, algorithm %d, subsets %d, relaxation %.9g, fall %.9g, prior %d %.9g %.9g %.9g, "
             "psf %.9g %.9g %.9g, efficiencies %d, attenuation %d, randoms %d, after %d",
             (int)request->family, recon->setup.scanner ? recon->setup.scanner->name : "none",
             info->backend, (int)info->mode, info->rays, info->samples[0], info->samples[1],
             info->samples[2], info->mu_steps, (int)request->algorithm, request->subsets,
             request->relaxation, request->relaxation_fall, request->has_prior, prior->beta,
             prior->gamma, prior->epsilon, request->psf_mm[0], request->psf_mm[1],
             request->psf_mm[2], request->efficiencies != NULL, recon->setup.mu != NULL,
             recon->inputs.randoms != NULL, request->first_after);
    const size_t used = strlen(text);
    describe_family(recon, text + used, LR_CHECKPOINT_SETTINGS - used);
}

static void print_digest(const struct recon *recon, char text[65])
{
    snprintf(text, 65, "%016llx", (unsigned long long)recon->digest);
}

/* --- writing --- */

lr_status recon_save_checkpoint(struct recon *recon, const lr_iteration *done)
{
    const struct recon_request *request = &recon->request;
    if (request->checkpoint == NULL || recon->cluster.rank != 0 ||
        done->number % request->checkpoint_every != 0) {
        return LR_OK;
    }
    lr_checkpoint checkpoint = {
        .image = recon->image, .iterations = done->number, .ranks = recon->cluster.size};
    CLI_TRY(recon_take_image(recon, done->image));
    describe(recon, checkpoint.settings);
    print_digest(recon, checkpoint.digest);
    return lr_checkpoint_write(request->checkpoint, &checkpoint, &recon->setup.report->log);
}

/* --- going on --- */

static lr_status compare(const struct recon *recon, const lr_checkpoint *checkpoint)
{
    struct report *report = recon->setup.report;
    const char *path = recon->request.checkpoint;
    char settings[LR_CHECKPOINT_SETTINGS], digest[65];
    describe(recon, settings);
    print_digest(recon, digest);
    if (strcmp(settings, checkpoint->settings) != 0) {
        return report_error(report, LR_BAD_INPUT,
                            "%s is of another reconstruction (%s) than this one (%s): give the "
                            "same options, or leave out --resume",
                            path, checkpoint->settings, settings);
    }
    if (strcmp(digest, checkpoint->digest) != 0) {
        return report_error(report, LR_BAD_INPUT,
                            "%s is of other data than what was read now: give the same files, or "
                            "leave out --resume",
                            path);
    }
    return setup_same_grid(&checkpoint->image->grid, &recon->setup.grid)
               ? LR_OK
               : report_error(report, LR_BAD_INPUT,
                              "%s is on another grid than the one asked for: give the same grid, "
                              "or leave out --resume",
                              path);
}

static lr_status take(struct recon *recon, lr_checkpoint *checkpoint)
{
    struct recon_request *request = &recon->request;
    const int made = checkpoint->iterations - request->first_after;
    CLI_TRY(compare(recon, checkpoint));
    if (made >= request->iterations) {
        return report_error(recon->setup.report, LR_USAGE,
                            "%s has %d iterations already, and %d are asked for: ask for more, or "
                            "leave out --resume",
                            request->checkpoint, made, request->iterations);
    }
    request->iterations -= made;
    request->iterations_before = checkpoint->iterations;
    lr_image_destroy(recon->inputs.initial);
    recon->inputs.initial = checkpoint->image;
    checkpoint->image = NULL;
    report_info(recon->setup.report, "%s: goes on after iteration %d, of %d rank%s",
                request->checkpoint, checkpoint->iterations, checkpoint->ranks,
                checkpoint->ranks == 1 ? "" : "s");
    return LR_OK;
}

/* Whether the file is there, as all ranks see it. */
static lr_status find_file(const struct recon *recon, bool *is_there)
{
    const bool own = access(recon->request.checkpoint, F_OK) == 0;
    CLI_TRY(lr_comm_same(recon->cluster.comm, "view of the checkpoint",
                         own ? "the file is there" : "no such file"));
    *is_there = own;
    return LR_OK;
}

lr_status recon_resume(struct recon *recon)
{
    lr_checkpoint checkpoint;
    bool is_there = false;
    recon->request.first_after = recon->request.iterations_before;
    if (!recon->request.resumes) {
        return LR_OK;
    }
    CLI_TRY(find_file(recon, &is_there));
    if (!is_there) {
        report_info(recon->setup.report, "%s is not there: begins with the first iteration",
                    recon->request.checkpoint);
        return LR_OK;
    }
    CLI_TRY(lr_checkpoint_read(recon->request.checkpoint, &checkpoint, &recon->setup.report->log));
    const int64_t count = lr_grid_num_voxels(&checkpoint.image->grid);
    lr_status status = recon_compare_ranks(
        recon, "checkpoint",
        recon_digest(0, checkpoint.image->values, count * (int64_t)sizeof(float)), count);
    status = status == LR_OK ? take(recon, &checkpoint) : status;
    lr_checkpoint_finish(&checkpoint);
    return status;
}
