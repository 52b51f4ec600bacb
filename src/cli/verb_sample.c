/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * sample list, sample get. A sample is a scanner and the commands that make its files. The commands run in this
 * process, in the sample's folder, with fixed seeds. README.txt in that folder lists the commands, so that anyone can
 * run them again. */
#include "common.h"
#include "stop.h"
#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_STEPS = 8, MOST_WORDS = 48 };

struct sample {
    const char *name, *summary;
    const char *scanner;           /* text of scanner.yaml */
    const char *steps[MOST_STEPS]; /* commands that make the other files, without the program's name */
    const char *first_look;        /* a command for the reader */
};

static const struct sample samples[] = {
    {.name = "mouse",
     .summary = "a small-animal ring of 4,320 crystals, hot rods in water",
     .scanner = "name: mouse ring\n"
                "ring: {radius_mm: 45, modules: 18, rings: 2, ring_pitch_mm: 18.5}\n"
                "module: {crystals: [10, 12], pitch_mm: [1.5, 1.5], face_mm: [1.4, 1.4], depth_mm: 12}\n"
                "detection_depth_mm: 6\n"
                "coincidence: {field_of_view_mm: 50}\n"
                "crystal_material: LYSO\n"
                "tof: {resolution_ps: 300}\n",
     .steps = {"phantom derenzo --grid 32,32,8 --voxel-mm 0.9,0.9,2.4 -o truth.nii.gz",
               "phantom cylinder --value 0.0096 --radius-mm 14 --like truth.nii.gz -o mu.nii.gz",
               "simulate --scanner scanner.yaml --image truth.nii.gz --mu mu.nii.gz --mu-unit 1/mm --mu-as factors "
               "--counts 4000000 "
               "--truth counts-truth.nii.gz -o counts.h5",
               "simulate --scanner scanner.yaml --image truth.nii.gz --mu mu.nii.gz --mu-unit 1/mm --tof-ps 300 "
               "--counts 400000 "
               "--truth scan-truth.nii.gz -o scan.petsird"},
     .first_look = "recon --scanner scanner.yaml --data counts.h5 --mu mu.nii.gz --like truth.nii.gz --iterations 12 "
                   "-o image.nii.gz --png image.png"},
    {.name = "clinical",
     .summary = "a clinical ring with times of flight of 250 ps, six hot spheres in a body of water",
     .scanner = "name: clinical ring\n"
                "ring: {radius_mm: 390, modules: 38, rings: 2, ring_pitch_mm: 56}\n"
                "module: {crystals: [15, 13], pitch_mm: [4.2, 4.2], face_mm: [4.1, 4.1], depth_mm: 20}\n"
                "detection_depth_mm: 10\n"
                "coincidence: {field_of_view_mm: 560}\n"
                "crystal_material: LSO\n"
                "tof: {resolution_ps: 250}\n",
     .steps = {"phantom spheres --radius-mm 114.4 --grid 64,64,26 --voxel-mm 4 -o truth.nii.gz",
               "phantom cylinder --value 0.0096 --radius-mm 114.4 --like truth.nii.gz -o mu.nii.gz",
               "simulate --scanner scanner.yaml --image truth.nii.gz --mu mu.nii.gz --mu-unit 1/mm --tof-ps 250 "
               "--counts 500000 "
               "--duration 180 --truth scan-truth.nii.gz -o scan.petsird"},
     .first_look =
         "recon --operator listmode --scanner scan.petsird --events scan.petsird --mu mu.nii.gz --like truth.nii.gz "
         "--kernel line --algorithm osem --subsets 4 --iterations 3 -o image.nii.gz --png image.png"},
    {.name = "panels",
     .summary = "two panels that lean towards each other, as of breast scanners, six hot spheres in water",
     .scanner = "name: two leaning panels\n"
                "modules:\n"
                "  - {center_mm: [0, 60, 0], u: [0.9659258, 0.258819, 0], v: [0, 0, 1], crystals: [40, 30], "
                "pitch_mm: [2.2, 2.2], face_mm: [2.1, 2.1], depth_mm: 15}\n"
                "  - {center_mm: [0, -60, 0], u: [0.9659258, -0.258819, 0], v: [0, 0, 1], crystals: [40, 30], "
                "pitch_mm: [2.2, 2.2], face_mm: [2.1, 2.1], depth_mm: 15}\n"
                "detection_depth_mm: 7.5\n"
                "crystal_material: LYSO\n"
                "tof: {resolution_ps: 300}\n",
     .steps = {"phantom spheres --radius-mm 30 --grid 40,40,24 --voxel-mm 2 -o truth.nii.gz",
               "phantom cylinder --value 0.0096 --radius-mm 30 --like truth.nii.gz -o mu.nii.gz",
               "simulate --scanner scanner.yaml --image truth.nii.gz --mu mu.nii.gz --mu-unit 1/mm --mu-as factors "
               "--counts 2000000 "
               "--truth counts-truth.nii.gz -o counts.h5",
               "simulate --scanner scanner.yaml --image truth.nii.gz --mu mu.nii.gz --mu-unit 1/mm --tof-ps 300 "
               "--counts 300000 "
               "--truth scan-truth.nii.gz -o scan.petsird"},
     .first_look =
         "recon --operator listmode --scanner scan.petsird --events scan.petsird --mu mu.nii.gz --like truth.nii.gz "
         "--iterations 10 -o image.nii.gz --png image.png"},
    {.name = "layers",
     .summary = "a small ring with crystals in two layers, hot rods in water",
     .scanner = "name: ring of two layers\n"
                "ring: {radius_mm: 40, modules: 12, rings: 1}\n"
                "module:\n"
                "  crystals: [8, 3]\n"
                "  pitch_mm: [2.5, 3]\n"
                "  face_mm: [2.4, 2.9]\n"
                "  depth_mm: 16\n"
                "  layers:\n"
                "    - {depth_mm: 7}\n"
                "    - {depth_mm: 9}\n"
                "coincidence: {field_of_view_mm: 48}\n"
                "crystal_material: LYSO\n",
     .steps = {"phantom derenzo --grid 28,28,3 --voxel-mm 1,1,3 -o truth.nii.gz",
               "phantom cylinder --value 0.0096 --radius-mm 13.5 --like truth.nii.gz -o mu.nii.gz",
               "simulate --scanner scanner.yaml --image truth.nii.gz --mu mu.nii.gz --mu-unit 1/mm --mu-as factors "
               "--counts 2000000 "
               "--truth counts-truth.nii.gz -o counts.h5"},
     .first_look = "recon --scanner scanner.yaml --data counts.h5 --mu mu.nii.gz --like truth.nii.gz --iterations 5 "
                   "-o image.nii.gz --png image.png"},
};
enum { NUM_SAMPLES = sizeof(samples) / sizeof(samples[0]) };

static lr_status list(struct cli_args *args)
{
    CLI_TRY(args->status);
    struct json json = {0};
    if (args->report->json) {
        json = common_json_begin(stdout, args->verb->name);
        json_open(&json, "samples", '[');
    }
    for (int k = 0; k < NUM_SAMPLES; k++) {
        if (!args->report->json) {
            printf("%-10s %s\n", samples[k].name, samples[k].summary);
            continue;
        }
        json_open(&json, NULL, '{');
        json_text(&json, "name", samples[k].name);
        json_text(&json, "summary", samples[k].summary);
        json_close(&json, '}');
    }
    if (args->report->json) {
        json_close(&json, ']');
        common_json_end(&json);
    }
    return LR_OK;
}

/* Images of the emissions that counts are of. A sample has some of them. */
static const char *const truths[][2] = {{"counts-truth.nii.gz", "counts.h5"}, {"scan-truth.nii.gz", "scan.petsird"}};
enum { NUM_TRUTHS = sizeof(truths) / sizeof(truths[0]) };

/* Sums the emissions of the truths in the current folder. emissions: 0 for a truth that is not there. */
static lr_status sum_truths(struct report *report, double emissions[NUM_TRUTHS])
{
    for (int k = 0; k < NUM_TRUTHS; k++) {
        if (access(truths[k][0], F_OK) != 0) continue;
        lr_image *truth = lr_image_read(truths[k][0], &report->log);
        if (truth == NULL) return report_reason(report);
        emissions[k] = common_sum(truth->values, lr_grid_num_voxels(&truth->grid));
        lr_image_destroy(truth);
    }
    return LR_OK;
}

/* Writes README.txt about the files in the current folder. */
static lr_status write_readme(const struct sample *sample, const double emissions[NUM_TRUTHS], struct report *report)
{
    static const char *const files[][2] = {{"scanner.yaml", "the scanner"},
                                           {"truth.nii.gz", "relative activity per voxel, 1 at most"},
                                           {"mu.nii.gz", "attenuation of water, 0.0096 a mm"},
                                           {"counts.h5", "counts of all lines of response"},
                                           {"scan.petsird", "list mode with times of flight, and the scanner"}};
    struct common_text text;
    common_text_begin(&text);
    if (text.stream != NULL) {
        fprintf(text.stream, "%s: %s.\n\n", sample->name, sample->summary);
        for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++)
            if (access(files[k][0], F_OK) == 0) fprintf(text.stream, "%-19s %s\n", files[k][0], files[k][1]);
        for (int k = 0; k < NUM_TRUTHS; k++)
            if (emissions[k] > 0)
                fprintf(text.stream, "%-19s emissions per voxel of %s, %.9g in the whole image\n", truths[k][0],
                        truths[k][1], emissions[k]);
        fprintf(text.stream, "\nMade in this folder by\n\n");
        for (int k = 0; sample->steps[k] != NULL; k++) fprintf(text.stream, "  loraster %s\n", sample->steps[k]);
        fprintf(text.stream, "\nA first look:\n\n  loraster %s\n", sample->first_look);
    }
    return common_text_write(&text, report, "README.txt");
}

/* Refuses a folder whose scanner.yaml is not the sample's: somebody has changed it, or it is another sample's. */
static lr_status check_folder(struct report *report, const struct sample *sample, const char *folder)
{
    char path[PATH_MAX], text[4096];
    snprintf(path, sizeof(path), "%s/scanner.yaml", folder);
    FILE *file = fopen(path, "rb");
    if (file == NULL) return LR_OK;
    const size_t length = fread(text, 1, sizeof(text), file);
    fclose(file);
    return length == strlen(sample->scanner) && memcmp(text, sample->scanner, length) == 0
               ? LR_OK
               : report_error(report, LR_FAILED,
                              "%s is not that of sample %s, and would be lost: name another folder (-o), or remove it",
                              path, sample->name);
}

static lr_status get(struct cli_args *args)
{
    const char *names[NUM_SAMPLES + 1] = {0}, *name = args->num_positional == 1 ? args->positional[0] : "";
    const struct sample *sample = NULL;
    for (int k = 0; k < NUM_SAMPLES; k++) {
        names[k] = samples[k].name;
        sample = strcmp(name, names[k]) == 0 ? &samples[k] : sample;
    }
    const char *path = args_has(args, "-o") ? args_required(args, "-o") : name;
    if (args->num_positional != 1) {
        args_complain(args, "sample get needs the name of one, such as mouse: see loraster sample list");
    } else if (sample == NULL) {
        const char *nearest = args_nearest(name, names);
        args_complain(args, "there is no sample %s: %s%s", name, nearest != NULL ? "did you mean " : "",
                      nearest != NULL ? nearest : "see loraster sample list");
    }
    CLI_TRY(args->status);
    CLI_TRY(check_folder(args->report, sample, path));

    struct common_folder folder;
    const int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    lr_status status = common_folder_begin(&folder, args->report, path);
    if (status == LR_OK && (here < 0 || chdir(folder.part) != 0))
        status = report_error(args->report, LR_FAILED, "%s cannot be entered: %s", folder.part, strerror(errno));
    if (status == LR_OK) status = lr_text_write("scanner.yaml", sample->scanner, &args->report->log);
    /* This verb prints one object on standard output if --json is given. Meanwhile, the steps print on standard
       error. */
    const bool json = args->report->json;
    const int output = json ? dup(STDOUT_FILENO) : -1;
    if (status == LR_OK && json && (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0))
        status = report_error(args->report, LR_FAILED, "standard output cannot be kept: %s", strerror(errno));
    args->report->json = false;
    for (int n = 0; sample->steps[n] != NULL && status == LR_OK; n++) {
        char text[1024], *words[MOST_WORDS + 1] = {0}, *rest = NULL;
        snprintf(text, sizeof(text), "%s", sample->steps[n]);
        char *word = strtok_r(text, " ", &rest);
        for (int k = 0; word != NULL && k < MOST_WORDS; k++, word = strtok_r(NULL, " ", &rest)) words[k] = word;
        report_info(args->report, "running: %s", sample->steps[n]);
        status = program_run(args->report, words);
        stop_expect_outputs(NULL, 0); /* the names of the outputs are in `text`, which ends here */
    }
    args->report->json = json;
    if (output >= 0) {
        fflush(stdout);
        dup2(output, STDOUT_FILENO);
        close(output);
    }
    double emissions[NUM_TRUTHS] = {0};
    if (status == LR_OK) status = sum_truths(args->report, emissions);
    if (status == LR_OK) status = write_readme(sample, emissions, args->report);
    if (here >= 0 && fchdir(here) != 0 && status == LR_OK)
        status = report_error(args->report, LR_FAILED, "the folder could not be left: %s", strerror(errno));
    status = common_folder_end(&folder, args->report, status);
    if (here >= 0) close(here);
    CLI_TRY(status);
    report_info(args->report, "%s is ready: %s/README.txt says what is in it, and what to do first", path, path);
    if (json) {
        struct json object = common_json_begin(stdout, args->verb->name);
        json_text(&object, "name", name);
        json_text(&object, "output", path);
        json_open(&object, "truths", '[');
        for (int k = 0; k < NUM_TRUTHS; k++) {
            if (!(emissions[k] > 0)) continue;
            json_open(&object, NULL, '{');
            json_text(&object, "truth", truths[k][0]);
            json_text(&object, "measurement", truths[k][1]);
            json_number(&object, "emissions", emissions[k]);
            json_close(&object, '}');
        }
        json_close(&object, ']');
        common_json_end(&object);
    }
    return LR_OK;
}

static const struct cli_option get_options[] = {
    {"-o", "FOLDER", "folder to write; default: the sample's name", NULL},
    {0},
};

const struct cli_verb verb_sample_list = {
    .name = "sample list",
    .summary = "Lists samples: scanners with measurements to try things on.",
    .example = "loraster sample list",
    .run = list,
};

const struct cli_verb verb_sample_get = {
    .name = "sample get",
    .positionals = "NAME",
    .summary = "Makes a sample on the spot: scanner, truth, attenuation, counts or list mode.",
    .example = "loraster sample get mouse",
    .groups = {{"output", get_options}},
    .run = get,
};
