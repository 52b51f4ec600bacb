/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The options of the verb recon, and the rules for combining them. */
#include "cli/recon/request.h"

#include "base/path.h"

#include "cli/cluster.h"
#include "cli/direct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const recon_families[] = {"correspondence", "direct", "listmode", NULL};

const char *const recon_algorithms[] = {
    [RECON_MLEM] = "mlem", [RECON_OSEM] = "osem", [RECON_RAMLA] = "ramla", [RECON_BSREM] = "bsrem", NULL};

const char *const recon_schemes[] = {
    [RECON_EXACT] = "exact", [RECON_PAPER] = "paper", [RECON_DISTRIBUTED] = "distributed", NULL};

/* --- options --- */

const struct cli_option recon_input_options[] = {
    {"--operator", "FAMILY",
     "correspondence; direct: histo-images; listmode: events one by one, with their times of flight; default "
     "correspondence",
     CLI_WORDS_OF(recon_families)},
    {"--data", "FILE", "LOR data (HDF5, or STIR's .hs); direct: histo-images (HDF5)", NULL},
    {"--events", "FILE", "list mode instead: " LR_EVENTS_READ, NULL},
    {"--crystal-map", "FILE",
     "of SAFIR (*crystal_map.txt) or CASToR (.lut, .geom); default: the one beside; without --scanner it is the "
     "scanner, too",
     NULL},
    {"--header", "FILE", "of Siemens events; default: the *.hdr* beside that names them", NULL},
    {COMMON_UNTIL_DAMAGE_OPTION},
    {"--bootstrap", "SEED", "draw the counts or events again from themselves: a replicate", NULL},
    {"-o", "IMAGE", "image to write (.nii.gz, .hv, .mhd, .npy ...): emissions per voxel", NULL},
    {"--png", "FILE", "also draw three slices through the centre of the activity", NULL},
    {"--dry-run", NULL, FORECAST_DRY_RUN_WORDS "; of counts per LOR alone (--operator correspondence)", NULL},
    {"--save-every", "K", "also write every K-th iteration, as NAME.iterK before the ending", NULL},
    {0},
};

const struct cli_option recon_algorithm_options[] = {
    {"--algorithm", "NAME", "mlem, osem, ramla, or bsrem (with a prior); default mlem", CLI_WORDS_OF(recon_algorithms)},
    {"--iterations", "N", "default 10; of osem and ramla 3; of bsrem 30", NULL},
    {"--subsets", "N", "of osem, ramla and bsrem; default 7, of direct 10, or as many as the data can have", NULL},
    {"--relaxation", "L",
     "ramla, bsrem: of the first iteration; above 1 voxels may become 0; default 1, of ramla with M subsets 10 / (9 "
     "+ M)",
     NULL},
    {"--steps", "WHOSE",
     "ramla: own, by the voxel's sensitivity, or common, by the largest of all; default own, of direct common",
     CLI_WORDS("own", "common")},
    {"--fall", "F", "ramla, bsrem: iteration k = 0, 1, ... has L / (1 + F k); default 0, of bsrem 0.1", NULL},
    {"--initial", "IMAGE", "image to start from, or a checkpoint (.h5); default: uniform", NULL},
    {"--after", "N",
     "iterations that made --initial (a checkpoint has the number): --fall and numbers go on from there", NULL},
    {"--truth", "IMAGE", "report how far each iteration's image is from this one", NULL},
    {"--additive", "FILE", "expected randoms and scatter, as --data", NULL},
    {"--factors", "FILE", "direct: attenuation, efficiencies, geometry: histo-images", NULL},
    {"--fit", NULL, "direct: report the log-likelihood of each iteration, for which a graphics processor takes longer",
     NULL},
    {"--randoms", "HOW", "auto (by fan sums where the events have delayeds) or none", CLI_WORDS("auto", "none")},
    {"--efficiencies", "FILE", "one number per crystal (.npy, text or .petsird)", NULL},
    {LOR_FACTORS_MU_AS},
    {"--psf-mm", "FWHM|X,Y,Z", "resolution in image space: a Gaussian of this width; default none", NULL},
    {0},
};

const struct cli_option recon_prior_options[] = {
    {"--prior", "NAME", "rdp (relative differences) or none; default none", CLI_WORDS("none", "rdp")},
    {"--beta", "B", "strength; needed with --prior", NULL},
    {"--gamma", "G", "how much less edges weigh than noise; default 2", NULL},
    {"--epsilon", "E",
     "in units of the image; default a hundredth of the uniform image of the counts that the additive term leaves",
     NULL},
    {"--kappa", "IMAGE", "weights of the voxels; default 1", NULL},
    {0},
};

const struct cli_option recon_direct_options[] = {
    {"--views-per-block", "N", "direct: subsets of N views each, in an order that spreads them, instead of --subsets",
     NULL},
    {"--storage", "NAME", "images on the device in buffers or textures; default buffers",
     CLI_WORDS("buffers", "textures")},
    {"--variant", "NAME", "how cuda projects: see loraster direct project", CLI_WORDS_OF(direct_variant_names)},
    {0},
};

const struct cli_option recon_listmode_options[] = {
    {"--kernel", "NAME", "tube (of response), line (a thin ray) or exact (solid angles); default tube",
     CLI_WORDS("tube", "line", "exact")},
    {"--tube-mm", "MM", "diameter of the tube; default where its Gaussian has fallen to 1 %", NULL},
    {"--tube-fwhm-mm", "MM", "FWHM of the tube's Gaussian; default half of the crystals' pitch", NULL},
    {"--as-paper", NULL, "shares and times of flight as Cui et al. 2011 have them", NULL},
    {"--tof-ps", "PS", "time resolution, FWHM; default: of the events, or the scanner's", NULL},
    {"--without-tof", NULL, "leave times of flight out", NULL},
    {"--blobs", NULL, "image of overlapping blobs, whose line integrals take the kernel's place", NULL},
    {"--blob-radius-mm", "MM", "of --blobs; default 10", NULL},
    {"--variant", "NAME",
     "how cuda projects, by the paper's steps: simple, coalesced, cached, partitioned, sorted or fastmath; default "
     "its fastest way",
     CLI_WORDS_OF(common_listmode_variants)},
    {"--corrections", "FILE",
     "corrections.h5 of GE list mode: attenuation, efficiencies, randoms and scatter of each event", NULL},
    {"--sensitivity-lines", "N", "LORs of the sensitivity; default 33,554,432 or more; more at ends", NULL},
    {0},
};

const struct cli_option recon_frame_options[] = {
    {"--frames", "LIST", "listmode: an image each of intervals one after the other: 10x60,5x300 s", NULL},
    {"--frames-in-one", NULL, "one NIfTI file with a volume for each frame, instead of a file each", NULL},
    {"--frames-from", "S", "second at which the first frame begins; default 0", NULL},
    {"--part", "K/N", "only the K-th of N parts of the frames, with about as many events", NULL},
    {0},
};

const struct cli_option recon_checkpoint_options[] = {
    {"--checkpoint", "FILE", "what is needed to go on (HDF5), renewed after some iterations", NULL},
    {"--checkpoint-every", "K", "iterations; default 1", NULL},
    {"--resume", NULL,
     "go on from that file, where it is there, with any number of ranks; --combine paper with as many", NULL},
    {0},
};

const struct cli_option recon_ranks_options[] = {
    {"--combine", "HOW",
     "exact (the images of one process), paper (guesses of the ranks, composed), or distributed; default exact",
     CLI_WORDS_OF(recon_schemes)},
    {"--local-iterations", "N",
     "paper, distributed: of each rank between two exchanges; default: paper all, distributed 4", NULL},
    {CLUSTER_EXCHANGE_OPTION},
    {0},
};

/* --- options that contradict each other --- */

static void refuse_all(struct cli_args *args, const char *const *options, const char *family)
{
    for (int k = 0; options[k] != NULL; k++)
        if (args_has(args, options[k])) args_complain(args, "%s belongs to --operator %s", options[k], family);
}

/* Reports options that do not belong to the chosen family. but_for: options that this family has, too; NULL at the
 * end. */
static void refuse_group(struct cli_args *args, const struct cli_option *options, const char *const *but_for,
                         const char *family)
{
    for (int k = 0; options[k].name != NULL; k++) {
        const char *const one[] = {options[k].name, NULL};
        int n = 0;
        while (but_for[n] != NULL && strcmp(one[0], but_for[n]) != 0) n++;
        if (but_for[n] == NULL) refuse_all(args, one, family);
    }
}

/* Reports options that do not belong to the chosen family. */
static void check_family(struct cli_args *args, enum recon_family family)
{
    static const char *const of_lors[] = {"--mode",        "--rays",         "--mu-steps",
                                          "--penetration", "--layers-alone", "--deterministic",
                                          "--store",       "--dry-run",      NULL};
    static const char *const of_scanners[] = {"--samples",     "--max-memory", "--events",
                                              "--crystal-map", "--header",     "--randoms",
                                              "--mu-as",       "--scanner",    NULL};
    static const char *const of_factors[] = {"--mu", "--mu-unit", "--efficiencies", NULL};
    static const char *const of_histo_images[] = {"--factors", "--fit", NULL};
    static const char *const tof[] = {"--tof-ps", NULL}, *const tof_variant[] = {"--tof-ps", "--variant", NULL};
    const bool is_direct = family == RECON_DIRECT, is_listmode = family == RECON_LISTMODE;
    refuse_all(args, family != RECON_CORRESPONDENCE ? of_lors : tof_variant,
               family != RECON_CORRESPONDENCE ? "correspondence" : "direct or listmode");
    if (is_direct) {
        if (args_has(args, "--events")) {
            args_complain(args,
                          "--operator direct takes histo-images: loraster direct deposit --events %s ... makes them",
                          args_text(args, "--events"));
        }
        for (int k = 0; of_factors[k] != NULL; k++) {
            if (!args_has(args, of_factors[k])) continue;
            args_complain(
                args,
                "in --operator direct %s is part of the factors: loraster direct factors %s ... -o n.h5 makes "
                "them, and recon takes them by --factors n.h5",
                of_factors[k], of_factors[k]);
        }
        refuse_all(args, of_scanners, "correspondence or listmode");
    } else {
        refuse_all(args, of_histo_images, "direct");
        refuse_group(args, direct_kernel_options, tof, "direct");
        refuse_group(args, recon_direct_options, tof_variant, "direct");
    }
    if (!is_listmode) refuse_group(args, recon_listmode_options, tof_variant, "listmode");
}

/* --- algorithm --- */

/* The limits for the numbers of iterations, subsets and views. */
static const int64_t counts[2] = {1, 1000000};

bool recon_has_steps(enum recon_algorithm algorithm)
{
    return algorithm == RECON_RAMLA || algorithm == RECON_BSREM;
}

double recon_relaxation(const struct recon_request *request, int subsets)
{
    if (request->relaxation > 0) return request->relaxation;
    return request->algorithm == RECON_BSREM ? 1 : lr_ramla_relaxation(subsets);
}

static double at_least_0(struct cli_args *args, const char *name, double fallback)
{
    const double value = args_number(args, name, fallback, false);
    if (value < 0) args_complain(args, "%s %s: it must not be negative", name, args_text(args, name));
    return value;
}

static void read_algorithm(struct cli_args *args, struct recon_request *request)
{
    request->algorithm = (enum recon_algorithm)args_word(args, "--algorithm", NULL, RECON_MLEM);
    const bool mlem = request->algorithm == RECON_MLEM, bsrem = request->algorithm == RECON_BSREM;
    const bool is_direct = request->family == RECON_DIRECT;
    const int usual = is_direct ? 10 : 7;
    request->iterations = (int)args_int(args, "--iterations", bsrem ? 30 : mlem ? 10 : 3, counts);
    request->iterations_before = (int)args_int(args, "--after", 0, counts);
    request->views_per_block = (int)args_int(args, "--views-per-block", 0, counts);
    request->subsets = (int)args_int(args, "--subsets", mlem ? 1 : usual, counts);
    request->has_subsets = args_has(args, "--subsets");
    request->save_every = (int)args_int(args, "--save-every", 0, counts);
    request->relaxation = args_number(args, "--relaxation", 0, true);
    if (args_has(args, "--steps") && request->algorithm != RECON_RAMLA)
        args_complain(args, "--steps belongs to --algorithm ramla");
    request->own_steps = args_word(args, "--steps", NULL, is_direct) == 0 && request->algorithm == RECON_RAMLA;
    request->relaxation_fall = at_least_0(args, "--fall", bsrem ? 0.1 : 0);
    request->has_prior = args_word(args, "--prior", NULL, 0) == 1;
    request->prior.beta = at_least_0(args, "--beta", 0);
    request->prior.gamma = at_least_0(args, "--gamma", 2);
    request->prior.epsilon = args_number(args, "--epsilon", 0, true);
    request->kappa = args_text(args, "--kappa");

    for (int k = 0; recon_prior_options[k].name != NULL; k++) {
        const char *name = recon_prior_options[k].name;
        if (args_has(args, name) && request->algorithm != RECON_BSREM)
            args_complain(args, "%s belongs to --algorithm bsrem", name);
        else if (args_has(args, name) && k > 0 && !request->has_prior)
            args_complain(args, "%s belongs to --prior rdp", name);
    }
    if (request->has_prior && !args_has(args, "--beta"))
        args_complain(args, "--prior rdp needs --beta B, how strong it is");
}

lr_status recon_request_read_listmode(struct recon_request *request, struct cli_args *args)
{
    request->listmode = (lr_listmode_params){
        .kernel = (lr_listmode_kernel)args_word(args, "--kernel", NULL, LR_LISTMODE_TUBE),
        .tube = {.width_mm = args_number(args, "--tube-mm", 0, true),
                 .fwhm_mm = args_number(args, "--tube-fwhm-mm", 0, true),
                 .as_paper = args_has(args, "--as-paper")},
        .sensitivity_lines = args_int(args, "--sensitivity-lines", 0, (const int64_t[]){1, INT64_MAX}),
        .variant = (lr_listmode_variant)(args_word(args, "--variant", common_listmode_variants, -1) + 1),
    };
    static const char *const of_kernels[] = {"--kernel", "--tube-mm", "--tube-fwhm-mm", "--as-paper", NULL};
    static const char *const corrected[] = {"--mu",     "--efficiencies", "--additive", "--randoms",
                                            "--frames", "--without-tof",  NULL};
    const char *backend = args_text(args, "--backend");
    const bool has_blobs = args_has(args, "--blobs");
    if (args_has(args, "--variant") && (backend == NULL || strcasecmp(backend, "cuda") != 0))
        args_complain(args, "--variant is for --backend cuda");
    if (request->listmode.kernel != LR_LISTMODE_TUBE &&
        (args_has(args, "--tube-mm") || args_has(args, "--tube-fwhm-mm")))
        args_complain(args, "--tube-mm and --tube-fwhm-mm belong to --kernel tube");
    if (request->listmode.kernel == LR_LISTMODE_EXACT && request->listmode.tube.as_paper)
        args_complain(args, "--as-paper belongs to --kernel tube or line");
    if (request->listmode.kernel != LR_LISTMODE_EXACT && args_has(args, "--samples"))
        args_complain(args, "in list mode --samples belongs to --kernel exact");

    for (int k = 0; has_blobs && of_kernels[k] != NULL; k++)
        if (args_has(args, of_kernels[k]))
            args_complain(args, "%s and --blobs exclude each other: blobs are the kernel", of_kernels[k]);
    if (has_blobs && args_has(args, "--initial"))
        args_complain(args, "--initial is an image of voxels, which --blobs cannot begin with");
    if (has_blobs && (args_has(args, "--prior") || args_has(args, "--psf-mm")))
        args_complain(args, "--prior and --psf-mm are of voxels, and --blobs has none");
    if (args_has(args, "--blob-radius-mm") && !has_blobs) args_complain(args, "--blob-radius-mm belongs to --blobs");

    for (int k = 0; args_has(args, "--corrections") && corrected[k] != NULL; k++) {
        if (args_has(args, corrected[k])) {
            args_complain(args,
                          "%s and --corrections exclude each other: the file has attenuation, efficiencies, and "
                          "randoms and scatter per bin of time of flight, of the whole list",
                          corrected[k]);
        }
    }
    if (args_has(args, "--additive") && args_has(args, "--frames"))
        args_complain(args, "--additive is of the whole acquisition, and --frames cut it up");
    if (args_has(args, "--tof-ps") && args_has(args, "--without-tof"))
        args_complain(args, "--tof-ps and --without-tof contradict each other");

    request->has_blobs = args_has(args, "--blobs");
    request->blob_radius_mm = args_number(args, "--blob-radius-mm", 0, true);
    request->without_tof = args_has(args, "--without-tof");
    request->tof_ps = args_tof_ps(args);
    return args->status;
}

enum { MOST_FRAMES = 10000 };

/* Reads lengths of consecutive frames in seconds: "60,60,300" or "10x60,5x300". */
static void read_frames(struct cli_args *args, struct recon_request *request)
{
    const char *text = args_text(args, "--frames"), *at = text;
    if (text == NULL) {
        if (args_has(args, "--frames-from") || args_has(args, "--frames-in-one") || args_has(args, "--part"))
            args_complain(args, "--frames-from, --frames-in-one and --part belong to --frames");
        return;
    }
    const double from_s = args_number(args, "--frames-from", 0, false);
    args_share(args, "--part", &request->part[0], &request->part[1]);
    if (request->family != RECON_LISTMODE) args_complain(args, "--frames belongs to --operator listmode");
    if (request->picture != NULL) args_complain(args, "--png draws one image: leave it out with --frames");
    request->frames_in_one = args_has(args, "--frames-in-one");
    if (request->frames_in_one && !lr_path_ends(request->output, ".nii") && !lr_path_ends(request->output, ".nii.gz"))
        args_complain(args, "--frames-in-one writes NIfTI: end the name of -o in .nii or .nii.gz");
    static const char *const of_files[] = {"--part", "--checkpoint", "--save-every", NULL};
    for (int k = 0; request->frames_in_one && of_files[k] != NULL; k++)
        if (args_has(args, of_files[k]))
            args_complain(args, "%s needs a file for each frame: leave out --frames-in-one", of_files[k]);
    if (from_s < 0) args_complain(args, "--frames-from %s: it must not be negative", args_text(args, "--frames-from"));
    bool is_good = true, is_last = false;
    while (is_good && !is_last) {
        char *end;
        double number = strtod(at, &end);
        int64_t count = 1;
        is_good = end != at;
        if (is_good && *end == 'x') {
            const char *seconds = end + 1;
            count = number >= 1 && number <= MOST_FRAMES && number == floor(number) ? (int64_t)number : 0;
            number = strtod(seconds, &end);
            is_good = end != seconds;
        }
        const int64_t all = request->num_intervals + count;
        is_last = *end == '\0';
        is_good = is_good && (is_last || (*end == ',' && end[1] != '\0')) && count >= 1 && all <= MOST_FRAMES &&
                  isfinite(number) && number > 0;
        struct recon_interval *list = is_good ? realloc(request->intervals, (size_t)all * sizeof(*list)) : NULL;
        is_good = list != NULL;
        if (is_good) request->intervals = list;
        for (; is_good && request->num_intervals < all; request->num_intervals++) {
            const double begin = request->num_intervals > 0 ? list[request->num_intervals - 1].end_s : from_s;
            list[request->num_intervals] = (struct recon_interval){.begin_s = begin, .end_s = begin + number};
        }
        at = end + 1;
    }
    if (!is_good) {
        args_complain(args, "--frames %s: give lengths in seconds, at most %d, such as 60,60,300 or 10x60,5x300", text,
                      MOST_FRAMES);
    } else if (request->part[1] > request->num_intervals) {
        args_complain(args, "%d frames cannot be cut into %lld parts", request->num_intervals,
                      (long long)request->part[1]);
    }
}

static void read_ranks(struct cli_args *args, struct recon_request *request)
{
    request->combine = (enum recon_combine)args_word(args, "--combine", NULL, 0);
    request->exchange = (lr_exchange)args_word(args, "--exchange", NULL, LR_EXCHANGE_AUTO);
    request->local_iterations =
        (int)args_int(args, "--local-iterations", request->combine == RECON_PAPER ? request->iterations : 4, counts);
    if (request->combine == RECON_EXACT && args_has(args, "--local-iterations"))
        args_complain(args, "--local-iterations belongs to --combine paper or distributed");
    if (request->combine == RECON_PAPER && request->family == RECON_LISTMODE) {
        args_complain(args, "--combine paper weighs guesses by the counts of all LORs, also those without any, and "
                            "list mode has only events: take --combine exact or distributed");
    }
    if (request->combine == RECON_PAPER && request->algorithm == RECON_BSREM) {
        args_complain(args, "--combine paper composes guesses of mlem, osem or ramla: the least "
                            "squares of its weights know of no prior");
    }
    if (request->combine == RECON_PAPER && request->save_every > 0) {
        args_complain(args, "--save-every belongs to --combine exact or distributed: the guesses "
                            "of ranks are no images of all counts");
    }
    if (request->combine == RECON_DISTRIBUTED && request->algorithm != RECON_MLEM) {
        args_complain(args, "--combine distributed maximises the likelihood by updates of its own: "
                            "take --algorithm mlem");
    }
}

void recon_request_read(struct recon_request *request, struct cli_args *args)
{
    *request = (struct recon_request){
        .family = (enum recon_family)args_word(args, "--operator", NULL, 0),
        .data = args_text(args, "--data"),
        .events = args_text(args, "--events"),
        .crystal_map = args_text(args, "--crystal-map"),
        .additive = args_text(args, "--additive"),
        .efficiencies = args_text(args, "--efficiencies"),
        .corrections = args_text(args, "--corrections"),
        .initial = args_text(args, "--initial"),
        .truth = args_text(args, "--truth"),
        .output = args_required(args, "-o"),
        .picture = args_text(args, "--png"),
        .factors = args_text(args, "--factors"),
    };
    read_algorithm(args, request);
    request->randoms = (enum recon_randoms)args_word(args, "--randoms", NULL, RECON_RANDOMS_AUTO);
    request->asks_for_randoms = args_has(args, "--randoms") && request->randoms == RECON_RANDOMS_AUTO;
    request->mu_as = lor_factors_mu_as(args);
    request->has_psf = args_triple(args, "--psf-mm", true, request->psf_mm);
    for (int axis = 0; request->has_psf && axis < 3; axis++)
        if (!(request->psf_mm[axis] >= 0))
            args_complain(args, "--psf-mm %s: FWHMs must not be negative", args_text(args, "--psf-mm"));
    request->bootstraps = args_has(args, "--bootstrap");
    request->bootstrap_seed = (uint64_t)args_int(args, "--bootstrap", 0, args_seeds);
    read_ranks(args, request);
    request->checkpoint = args_text(args, "--checkpoint");
    request->checkpoint_every = (int)args_int(args, "--checkpoint-every", 1, counts);
    request->resumes = args_has(args, "--resume");
    if (request->checkpoint == NULL && (request->resumes || args_has(args, "--checkpoint-every")))
        args_complain(args, "--resume and --checkpoint-every need --checkpoint FILE");

    request->without_fit = request->family == RECON_DIRECT && !args_has(args, "--fit");
    check_family(args, request->family);
    if (request->family == RECON_DIRECT) {
        args_required(args, "--data");
    } else {
        if (request->family == RECON_LISTMODE && (request->data != NULL || request->events == NULL))
            args_complain(args, "--operator listmode needs --events FILE, and no --data");
        if ((request->data != NULL) == (request->events != NULL))
            args_complain(args, "recon needs either --data FILE or --events FILE");
        static const char *const of_events[] = {"--crystal-map", "--header", COMMON_UNTIL_DAMAGE};
        for (int k = 0; request->events == NULL && k < 3; k++)
            if (args_has(args, of_events[k])) args_complain(args, "%s belongs to --events", of_events[k]);
        if (request->events != NULL) request->source = common_events_source(args, request->events);
    }
    const bool has_steps = recon_has_steps(request->algorithm), is_mlem = request->algorithm == RECON_MLEM;
    if (is_mlem && args_has(args, "--subsets"))
        args_complain(args, "--subsets belongs to --algorithm osem, ramla or bsrem");
    if (is_mlem && request->views_per_block > 0)
        args_complain(args, "ML-EM has all views in one block: leave out --views-per-block");
    if (request->views_per_block > 0 && args_has(args, "--subsets"))
        args_complain(args, "--views-per-block and --subsets exclude each other: both say how many subsets there are");
    if (request->views_per_block > 0 && request->combine != RECON_EXACT)
        args_complain(args, "--views-per-block belongs to --combine exact");
    if (!has_steps && (args_has(args, "--relaxation") || args_has(args, "--fall")))
        args_complain(args, "--relaxation and --fall belong to --algorithm ramla or bsrem");
    if (args_has(args, "--after") && request->initial == NULL)
        args_complain(args, "--after says of how many iterations --initial is: give that image");
    const char *measured = request->data != NULL ? request->data : request->events;
    if (request->additive != NULL && measured != NULL && common_is_same_file(measured, request->additive)) {
        args_complain(args, "--additive %s is the data itself: give the expected randoms and scatter",
                      request->additive);
    }
    if (request->data != NULL && request->asks_for_randoms)
        report_warn(args->report,
                    "--randoms auto has no effect: only events have delayeds, and %s is LOR data: give the "
                    "expected randoms by --additive",
                    request->data);
    if (request->additive != NULL && request->asks_for_randoms)
        args_complain(args, "--additive gives the randoms: leave out --randoms auto");

    read_frames(args, request);
}
