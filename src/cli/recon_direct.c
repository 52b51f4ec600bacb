/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * recon --operator direct: histo-images instead of LOR data. */
#include "recon.h"

#include <string.h>

static void refuse(struct cli_args *args, const char *option, const char *family)
{
    if (args_has(args, option)) args_complain(args, "%s belongs to --operator %s", option, family);
}

static void refuse_all(struct cli_args *args, const char *const *options, const char *family)
{
    for (int k = 0; options[k] != NULL; k++) refuse(args, options[k], family);
}

static void refuse_group(struct cli_args *args, const struct cli_option *options, const char *but_for,
                         const char *family)
{
    for (int k = 0; options[k].name != NULL; k++)
        if (but_for == NULL || strcmp(options[k].name, but_for) != 0) refuse(args, options[k].name, family);
}

void recon_check_family(struct cli_args *args, enum recon_family family)
{
    static const char *const of_lors[] = {"--mode",        "--rays",         "--mu-steps",
                                          "--penetration", "--layers-alone", "--deterministic",
                                          "--store",       "--dry-run",      NULL};
    static const char *const of_scanners[] = {"--events", "--crystal-map", "--header",  "--randoms", "--efficiencies",
                                              "--mu-as",  "--mu",          "--mu-unit", "--scanner", NULL};
    static const char *const of_histo_images[] = {"--factors", "--fit", NULL};
    if (family != RECON_CORRESPONDENCE) refuse_all(args, of_lors, "correspondence");
    if (family == RECON_DIRECT) {
        refuse(args, "--samples", "correspondence");
        refuse(args, "--max-memory", "correspondence");
        refuse_all(args, of_scanners, "correspondence");
    } else {
        refuse_all(args, of_histo_images, "direct");
        refuse_group(args, direct_kernel_options, family == RECON_LISTMODE ? "--tof-ps" : NULL, "direct");
    }
    if (family != RECON_LISTMODE) refuse_group(args, recon_listmode_options, "--tof-ps", "listmode");
}

/* The same as data of the operator, of their own. */
static lr_lor_data *copy_data(const struct recon *recon, const lr_histo_images *histo)
{
    const lr_lors *layout = lr_operator_get_info(recon->setup.op)->lors;
    lr_lor_data *data = lr_lor_data_create(layout, &recon->setup.report->log);
    if (data != NULL) memcpy(data->values, histo->values, (size_t)data->count * sizeof(*data->values));
    return data;
}

static lr_status read_additive(struct recon *recon)
{
    const lr_log *log = &recon->setup.report->log;
    if (recon->request.additive == NULL) return LR_OK;
    lr_histo_images *histo = NULL;
    CLI_TRY(recon_read_views(recon, recon->request.additive, false, &histo));
    if (lr_histo_images_check(histo, recon->setup.op, log) == LR_OK) recon->inputs.additive = copy_data(recon, histo);
    lr_histo_images_destroy(histo);
    return recon->inputs.additive != NULL ? LR_OK : report_reason(recon->setup.report);
}

static lr_status read_factors(struct recon *recon, const char *path)
{
    return path != NULL ? recon_read_views(recon, path, false, &recon->direct_factors) : LR_OK;
}

static lr_status open_with(struct recon *recon, struct cli_args *args, const lr_histo_images *counts)
{
    struct direct_setup *direct = &recon->direct;
    CLI_TRY(setup_grid(&direct->grid, args, &counts->grid));
    recon->setup.grid = direct->grid.grid;
    CLI_TRY(read_factors(recon, args_text(args, "--factors")));
    CLI_TRY(direct_open(direct, args,
                        &(struct direct_work){.views = counts->views,
                                              .num_views = counts->num_views,
                                              .factors = recon->direct_factors,
                                              .progress = &recon->bar.within,
                                              .cluster = &recon->cluster}));
    direct_tell_of_factors(args->report, recon->direct_factors);
    recon->setup.op = direct->op;
    direct->op = NULL;
    recon->inputs.data = copy_data(recon, counts);
    if (recon->inputs.data == NULL) return report_reason(recon->setup.report);
    if (recon->cluster.comm == NULL) /* ranks draw what they read */
        CLI_TRY(recon_bootstrap_counts(recon));
    return read_additive(recon);
}

lr_status recon_open_direct(struct recon *recon, struct cli_args *args)
{
    recon->setup.report = args->report;
    recon->direct.grid.report = args->report;
    CLI_TRY(direct_read_kernel(&recon->direct, args));
    lr_histo_images *counts = NULL;
    lr_status status = recon_read_views(recon, recon->request.data, true, &counts);
    status = status == LR_OK ? open_with(recon, args, counts) : status;
    lr_histo_images_destroy(counts);
    return status;
}

void recon_finish_direct(struct recon *recon)
{
    lr_histo_images_destroy(recon->direct_factors);
    recon->direct_factors = NULL;
    direct_finish(&recon->direct);
}
