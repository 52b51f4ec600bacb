/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "direct.h"

#include <math.h>
#include <stdlib.h>

const struct cli_option direct_view_options[] = {
    {"--azimuths", "N", "views around half a turn; default 40", NULL},
    {"--tilts", "N", "intervals of co-polar angle; default 3", NULL},
    {"--acceptance-deg", "D", "largest tilt of a line; default 10", NULL},
    {0},
};

const char *const direct_models[] = {"invariant", "variant1", "variant2", "variant3", "linear", NULL};

const struct cli_option direct_kernel_options[] = {
    {"--tof-ps", "PS", "time resolution, FWHM; default: of the histo-images", NULL},
    {"--model", "NAME", "radial width: invariant, variant1, variant2, variant3, linear; default invariant",
     CLI_WORDS_OF(direct_models)},
    {DIRECT_RADIAL_OPTIONS},
    {"--axial-mm", "MM", "FWHM along the axis; default 5.8", NULL},
    {"--asymmetric", NULL, "a second, wider Gaussian, shifted towards the axis", NULL},
    {"--measured", "FILE", "radial profiles (YAML) instead of a model", NULL},
    {"--support", "K2", "k^2 of the ellipsoid that kernels are cut to; default 9", NULL},
    {"--epsilon-mm", "MM", "width of an identifier's interval; default half a voxel", NULL},
    {0},
};

const char *const direct_variant_names[] = {"bands",         "columns",       "threads", "instructions",
                                            "shared-memory", "texture-cache", NULL};
_Static_assert(LR_DIRECT_FASTEST == 0 && LR_DIRECT_BANDS == 1, "the words begin with variant 1");

/* The backends of this family. The option --backend of recon also has words of other families. */
static const char *const backends[] = {"auto", "cpu", "compute", "cuda", NULL};

const struct cli_option direct_device_options[] = {
    {"--backend", "NAME", "cpu, compute or cuda; default auto: cuda on a graphics processor, or compute",
     CLI_WORDS_OF(backends)},
    {"--storage", "NAME", "images on the device in buffers or textures; default buffers",
     CLI_WORDS("buffers", "textures")},
    {"--variant", "NAME",
     "how cuda projects; from buffers: bands (default) or columns; from buffers or textures: threads, instructions, "
     "shared-memory (default for textures) or texture-cache",
     CLI_WORDS_OF(direct_variant_names)},
    {COMMON_DEVICE_OPTION},
    {"--threads", "N", "default 0: all processors", NULL},
    {0},
};

lr_status direct_read_views(struct direct_setup *setup, struct cli_args *args)
{
    const lr_view_set set = {
        .azimuths = (int)args_int(args, "--azimuths", 0, args_from_1),
        .tilts = (int)args_int(args, "--tilts", 0, args_from_1),
        .acceptance_deg = args_number(args, "--acceptance-deg", 0, true),
    };
    CLI_TRY(args->status);
    return lr_view_set_complete(&set, &setup->set, &args->report->log);
}

lr_resolution direct_read_widths(struct cli_args *args)
{
    const lr_resolution resolution = {
        .tof_ps = args_tof_ps(args),
        .model = (lr_radial_model)args_word(args, "--model", NULL, LR_RADIAL_INVARIANT),
        .radial_mm = args_number(args, "--radial-mm", 0, true),
        .radial_edge_mm = args_number(args, "--radial-edge-mm", 0, true),
        .edge_mm = args_number(args, "--edge-mm", 0, true),
        .axial_mm = args_number(args, "--axial-mm", 0, true),
    };
    if ((resolution.model == LR_RADIAL_LINEAR) != args_has(args, "--radial-edge-mm"))
        args_complain(args, "--radial-edge-mm and --model linear need each other");
    return resolution;
}

lr_status direct_read_kernel(struct direct_setup *setup, struct cli_args *args)
{
    const char *measured = args_text(args, "--measured");
    lr_resolution *resolution = &setup->kernel.resolution;
    *resolution = direct_read_widths(args);
    resolution->asymmetric = args_has(args, "--asymmetric");
    setup->kernel.support = args_number(args, "--support", 0, true);
    setup->kernel.epsilon_mm = args_number(args, "--epsilon-mm", 0, true);
    if (measured != NULL && args_has(args, "--model")) args_complain(args, "--measured and --model exclude each other");
    CLI_TRY(args->status);
    if (measured != NULL) {
        CLI_TRY(lr_radial_profiles_read(measured, &setup->profiles, &args->report->log));
        resolution->model = LR_RADIAL_MEASURED;
        resolution->measured = &setup->profiles;
    }
    return LR_OK;
}

lr_status direct_take_tof(struct direct_setup *setup, struct cli_args *args, double own_ps)
{
    double *tof_ps = &setup->kernel.resolution.tof_ps;
    if (*tof_ps > 0 && own_ps > 0 && fabs(*tof_ps - own_ps) > 0.1 * own_ps) {
        report_warn(
            args->report,
            "--tof-ps %g differs from the time resolution of the histo-images, %.4g ps: without --tof-ps theirs "
            "is taken",
            *tof_ps, own_ps);
    } else if (!(*tof_ps > 0) && own_ps > 0) {
        report_info(args->report, "time resolution %.4g ps, of the histo-images", own_ps);
        *tof_ps = own_ps;
    } else if (!(*tof_ps > 0)) {
        args_complain(args, "give the time resolution by --tof-ps: no histo-images tell it");
    }
    return args->status;
}

static lr_status get_factors(void *user, const lr_lor_span *span, float *values)
{
    const lr_histo_images *factors = user;
    for (int64_t k = 0; k < span->count; k++)
        values[k] = factors->values[span->numbers != NULL ? span->numbers[k] : span->first + k];
    return LR_OK;
}

lr_status direct_open(struct direct_setup *setup, struct cli_args *args, const struct direct_work *work)
{
    const lr_log *log = &args->report->log;
    const lr_lor_source factors = {.get = get_factors, .user = (void *)(uintptr_t)work->factors};
    lr_operator_params local = {0};
    lr_direct_params params = {
        .grid = &setup->grid.grid,
        .views = work->views,
        .num_views = work->num_views,
        .kernel = setup->kernel,
        .backend = backends[args_word(args, "--backend", backends, 0)],
        .threads = (int)args_int(args, "--threads", 0, args_from_0),
        .device = (int)args_int(args, "--device", 0, args_from_0),
        .storage = (lr_direct_storage)args_word(args, "--storage", NULL, 0),
        .variant = (lr_direct_variant)(args_word(args, "--variant", direct_variant_names, -1) + 1),
        .factors = work->factors != NULL ? &factors : NULL,
        .log = log,
        .progress = work->progress,
    };
    CLI_TRY(args->status);
    if (work->cluster != NULL && work->cluster->comm != NULL) {
        local.threads = params.threads;
        local.device = params.device;
        cluster_choose(work->cluster, args, &local);
        params.threads = local.threads;
        params.device = local.device;
    }
    setup->op = lr_direct_create(&params);
    if (setup->op == NULL) return report_reason(args->report);
    const lr_operator_info *info = lr_operator_get_info(setup->op);
    report_info(args->report, "backend %s on %s, %d views", info->backend, info->device, work->num_views);
    return work->factors != NULL ? lr_histo_images_check(work->factors, setup->op, log) : LR_OK;
}

void direct_finish(struct direct_setup *setup)
{
    lr_operator_destroy(setup->op);
    lr_radial_profiles_finish(&setup->profiles);
    setup_finish(&setup->grid);
}
