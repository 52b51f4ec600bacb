/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * info: shows what this installation can do, and on which devices. */
#include "base/path.h"
#include "common.h"
#include "verbs.h"

#include <lr/listmode.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DEVICES = 32, EDGE = 2 };

enum { RASTER = 0, CPU, COMPUTE, NATIVE, NUM_BACKENDS };
static const char *const backend_names[NUM_BACKENDS] = {
    [RASTER] = "raster", [CPU] = "cpu", [COMPUTE] = "compute", [NATIVE] = "native"};

enum { LISTMODE_CUDA = 0, LISTMODE_COMPUTE, LISTMODE_AUTO, NUM_LISTMODE };
static const char *const listmode_names[NUM_LISTMODE] = {
    [LISTMODE_CUDA] = "cuda", [LISTMODE_COMPUTE] = "compute", [LISTMODE_AUTO] = "auto"};

/* Result of trying to make an operator with a named backend. */
struct trial {
    const char *asked;
    bool works;
    char backend[32], device[192];
    char reason[1024]; /* the last error or warning; for "auto" also why it passed over other backends */
    lr_status status;
};

struct findings {
    lr_device devices[MAX_DEVICES];
    int num_devices;
    struct trial automatic;
    struct trial backends[NUM_BACKENDS];
    struct trial direct_cuda, direct_automatic; /* family direct */
    struct trial listmode[NUM_LISTMODE];
    struct trial mpi; /* for MPI, the member `device` contains the name of the library */
    struct trial viewer;
    lr_comm_support comm;
    struct started {
        const char *name, *purpose;
        bool is_for_builders; /* built with this program, and not installed */
        bool is_there;
        char path[PATH_MAX]; /* path of the program, or the reason why the program was not found */
    } programs[2];           /* programs that are started on demand */
};

static void keep_reason(void *user, lr_log_level level, lr_status status, const char *sentence)
{
    struct trial *trial = user;
    if (level >= (strcmp(trial->asked, "auto") == 0 ? LR_LOG_INFO : LR_LOG_WARNING)) {
        snprintf(trial->reason, sizeof(trial->reason), "%s", sentence);
        trial->status = status;
    }
}

static void take_operator(struct trial *trial, lr_operator *op)
{
    if (op != NULL) {
        const lr_operator_info *info = lr_operator_get_info(op);
        trial->works = true;
        snprintf(trial->backend, sizeof(trial->backend), "%s", info->backend);
        snprintf(trial->device, sizeof(trial->device), "%s", info->device);
    }
    lr_operator_destroy(op);
}

/* Tries the family correspondence. The operator is deterministic, so that no backend is timed. Timing would take
 * seconds if shaders had to be compiled first. */
static void create_operator(struct trial *trial, const lr_lors *lors, const lr_grid *grid, int device)
{
    const lr_log log = {keep_reason, trial};
    lr_operator *op = lr_operator_create(&(lr_operator_params){.lors = lors,
                                                               .grid = grid,
                                                               .backend = trial->asked,
                                                               .store = LR_STORE_NO,
                                                               .device = device,
                                                               .deterministic = true,
                                                               .log = &log});
    take_operator(trial, op);
}

typedef void create_fn(struct trial *trial, const lr_lors *lors, const lr_grid *grid, int device);

static struct trial try_backend(const char *name, int device, create_fn *create)
{
    struct trial trial = {.asked = name};
    const lr_log log = {keep_reason, &trial};
    /* Two small modules that face each other suffice to test a backend. */
    lr_module modules[2] = {{.centre_mm = {0, 100, 0},
                             .u = {1, 0, 0},
                             .v = {0, 0, 1},
                             .crystals = {EDGE, EDGE},
                             .pitch_mm = {4, 4},
                             .face_mm = {4, 4},
                             .depth_mm = 10}};
    modules[1] = modules[0];
    modules[1].centre_mm[1] = -100;
    const lr_scanner_params params = {.name = "trial", .modules = modules, .num_modules = 2, .log = &log};
    const lr_grid grid = lr_grid_centred((const int[3]){EDGE, EDGE, EDGE}, (const double[3]){1, 1, 1});
    lr_scanner *scanner = lr_scanner_create(&params);
    lr_lors *lors = scanner != NULL ? lr_lors_create(scanner, &log) : NULL;
    if (lors != NULL) create(&trial, lors, &grid, device);
    lr_lors_destroy(lors);
    lr_scanner_destroy(scanner);
    return trial;
}

/* Tries the family direct on a grid that is just large enough for its kernel, without look-up tables. The images are so
 * small that the driver clears them without compiling a shader. */
static struct trial try_direct(const char *name, int device)
{
    static const int size[3] = {4, 4, 4};
    static const double wide_mm[3] = {32, 32, 32};
    struct trial trial = {.asked = name};
    const lr_log log = {keep_reason, &trial};
    const lr_grid grid = lr_grid_centred(size, wide_mm);
    const lr_view view = {0};
    lr_operator *op =
        lr_direct_create(&(lr_direct_params){.grid = &grid,
                                             .views = &view,
                                             .num_views = 1,
                                             .kernel = {.resolution = {.tof_ps = 100, .radial_mm = 4, .axial_mm = 4}},
                                             .backend = name,
                                             .device = device,
                                             .log = &log});
    const char *passed_over = op != NULL ? lr_operator_get_info(op)->passed_over : NULL;
    if (passed_over != NULL) snprintf(trial.reason, sizeof(trial.reason), "%s", passed_over);
    take_operator(&trial, op);
    return trial;
}

/* Tries the family listmode, with one event. */
static void create_listmode(struct trial *trial, const lr_lors *lors, const lr_grid *grid, int device)
{
    const lr_log log = {keep_reason, trial};
    const lr_event event = {.crystals = {0, EDGE * EDGE}, .weight = 1};
    lr_operator *op = lr_listmode_create(&(lr_listmode_params){.lors = lors,
                                                               .grid = grid,
                                                               .events = &event,
                                                               .count = 1,
                                                               .kernel = LR_LISTMODE_LINE,
                                                               .backend = trial->asked,
                                                               .device = device,
                                                               .log = &log});
    take_operator(trial, op);
}

static void print_trial(const struct trial *trial)
{
    if (trial->works)
        printf("  %-9s works on %s\n", trial->asked, trial->device);
    else
        printf("  %-9s refused: %s\n", trial->asked, trial->reason);
}

/* Prints the backend that "auto" chose for a family. */
static void print_taken(const struct trial *automatic)
{
    printf("  auto      takes %s on %s%s%s\n", automatic->backend, automatic->device, *automatic->reason ? "; " : "",
           automatic->reason);
}

static void print_findings(const struct findings *found)
{
    printf("LORaster %s\n\nways to OpenGL, in the order they are tried\n", lr_version());
    int usable = 0;
    for (int k = 0; k < found->num_devices; k++) {
        const lr_device *device = &found->devices[k];
        char storage[32], memory[32];
        if (!device->usable) {
            printf("  refused   %s: %s%s%s\n", device->way, device->renderer, *device->renderer ? ": " : "",
                   device->reason);
            continue;
        }
        printf("  device %-2d %s: %s (%s, OpenGL %s)%s\n", usable++, device->way, device->renderer, device->vendor,
               device->version, device->software ? ", software renderer" : "");
        printf("            texture %lld, storage %s, memory %s, float atomics %s, viewport layers %s\n",
               (long long)device->max_texture_size, common_bytes(storage, device->max_storage_bytes),
               device->memory_bytes > 0 ? common_bytes(memory, device->memory_bytes) : "not reported",
               device->float_atomics ? "yes" : "no", device->viewport_layers ? "yes" : "no");
    }
    if (usable == 0)
        puts("  none works: install a driver, or the software renderer: apt-get install libegl1 libgl1-mesa-dri");
    puts("\nbackends");
    for (int k = 0; k < NUM_BACKENDS; k++) print_trial(&found->backends[k]);
    const struct trial *automatic = &found->automatic;
    if (!automatic->works) {
        printf("\nauto finds nothing: %s\n", automatic->reason);
    } else {
        printf("\nauto takes %s on %s, and what else serves where that does not%s%s\n", automatic->backend,
               automatic->device, *automatic->reason ? "; " : "", automatic->reason);
    }

    puts("\nfamily direct");
    print_trial(&found->direct_cuda);
    print_taken(&found->direct_automatic);
    puts("\nfamily listmode");
    for (int k = 0; k < NUM_LISTMODE; k++) {
        const bool is_taken = found->listmode[k].works && strcmp(listmode_names[k], "auto") == 0;
        (is_taken ? print_taken : print_trial)(&found->listmode[k]);
    }
    puts("\nseveral ranks (mpirun -n G loraster recon ...)");
    print_trial(&found->mpi);
    if (found->mpi.works) {
        printf("            this MPI takes %smemory of CUDA; guesses %s\n", found->comm.is_cuda_aware ? "" : "no ",
               found->comm.can_compose ? "can be composed (LAPACKE)" : "cannot be composed: built without LAPACKE");
    }
    if (found->comm.nccl[0] != '\0')
        printf("  NCCL      works: %s takes images from GPU to GPU, one rank a GPU\n", found->comm.nccl);
    else
        printf("  NCCL      refused: %s\n", found->comm.nccl_reason);

    puts("\nviewer (loraster view)");
    printf("  %s%s\n", found->viewer.works ? "is built in, by " : "refused: ",
           found->viewer.works ? found->viewer.device : found->viewer.reason);
    puts("\nprograms that are started when they are needed");
    for (int k = 0; k < 2; k++) {
        const struct started *program = &found->programs[k];
        if (program->is_for_builders && !program->is_there) continue;
        printf("  %s, which %s, %s%s\n", program->name, program->purpose, program->is_there ? "is " : "is missing: it ",
               program->path);
    }
}

static void trial_json(struct json *json, const char *key, const struct trial *trial)
{
    json_open(json, key, '{');
    json_text(json, "backend", trial->works ? trial->backend : trial->asked);
    json_bool(json, "works", trial->works);
    json_text(json, "device", trial->works ? trial->device : NULL);
    json_text(json, "reason", *trial->reason ? trial->reason : NULL);
    json_close(json, '}');
}

static void print_json(const struct findings *found)
{
    struct json json = common_json_begin(stdout, "info");
    json_open(&json, "devices", '[');
    for (int k = 0; k < found->num_devices; k++) {
        const lr_device *device = &found->devices[k];
        json_open(&json, NULL, '{');
        json_text(&json, "way", device->way);
        json_bool(&json, "usable", device->usable);
        json_text(&json, "reason", device->usable ? NULL : device->reason);
        json_text(&json, "renderer", device->renderer);
        json_text(&json, "vendor", device->vendor);
        json_text(&json, "opengl", device->version);
        json_bool(&json, "software", device->software);
        json_bool(&json, "float_atomics", device->float_atomics);
        json_bool(&json, "viewport_layers", device->viewport_layers);
        json_int(&json, "max_texture_size", device->max_texture_size);
        json_int(&json, "max_storage_bytes", device->max_storage_bytes);
        json_int(&json, "memory_bytes", device->memory_bytes);
        json_close(&json, '}');
    }

    json_close(&json, ']');
    json_open(&json, "backends", '[');
    for (int k = 0; k < NUM_BACKENDS; k++) trial_json(&json, NULL, &found->backends[k]);
    json_close(&json, ']');
    trial_json(&json, "auto", &found->automatic);
    json_open(&json, "direct", '{');
    trial_json(&json, "cuda", &found->direct_cuda);
    trial_json(&json, "auto", &found->direct_automatic);
    json_close(&json, '}');
    json_open(&json, "listmode", '{');
    for (int k = 0; k < NUM_LISTMODE; k++) trial_json(&json, listmode_names[k], &found->listmode[k]);
    json_close(&json, '}');
    json_open(&json, "ranks", '{');
    trial_json(&json, "mpi", &found->mpi);
    json_bool(&json, "cuda_aware", found->comm.is_cuda_aware);
    json_bool(&json, "can_compose", found->comm.can_compose);
    json_text(&json, "nccl", found->comm.nccl[0] != '\0' ? found->comm.nccl : NULL);
    json_text(&json, "nccl_reason", found->comm.nccl[0] != '\0' ? NULL : found->comm.nccl_reason);
    json_close(&json, '}');
    trial_json(&json, "viewer", &found->viewer);
    json_open(&json, "programs", '[');
    for (int k = 0; k < 2; k++) {
        const struct started *program = &found->programs[k];
        json_open(&json, NULL, '{');
        json_text(&json, "program", program->name);
        json_bool(&json, "works", program->is_there);
        json_text(&json, "path", program->is_there ? program->path : NULL);
        json_text(&json, "reason", program->is_there ? NULL : program->path);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    common_json_end(&json);
}

/* Warns that "auto" passed over a backend that worked when it was named, because its device may fail again. */
static void warn_of_passed_over(const struct trial *automatic, const struct trial *named, const char *family,
                                struct report *report)
{
    if (automatic->works && named->works && automatic->reason[0] != '\0')
        report_warn(report, "auto of the family %s: %s", family, automatic->reason);
}

static lr_status run(struct cli_args *args)
{
    struct findings found = {0};
    const char *backend = args_chosen(args, "--backend");
    const int device = (int)args_int(args, "--device", 0, (const int64_t[]){0, MAX_DEVICES});
    CLI_TRY(args->status);
    found.num_devices = lr_device_list(found.devices, MAX_DEVICES, &args->report->log);
    if (found.num_devices > MAX_DEVICES) found.num_devices = MAX_DEVICES;
    found.automatic = try_backend("auto", device, create_operator);
    for (int k = 0; k < NUM_BACKENDS; k++) found.backends[k] = try_backend(backend_names[k], device, create_operator);
    found.direct_cuda = try_direct("cuda", device);
    found.direct_automatic = try_direct("auto", device);
    for (int k = 0; k < NUM_LISTMODE; k++) found.listmode[k] = try_backend(listmode_names[k], device, create_listmode);
    found.mpi = (struct trial){.asked = "MPI", .backend = "MPI"};
    const lr_log log = {keep_reason, &found.mpi};
    found.mpi.works = lr_comm_probe(&found.comm, &log) == LR_OK;
    snprintf(found.mpi.device, sizeof(found.mpi.device), "%s", found.comm.library);
    /* The viewer is not loaded here, because window libraries keep memory until the process ends. `loraster view`
     * itself reports what is missing. */
    found.viewer = (struct trial){.asked = "view", .backend = "view", .device = "GLFW and Dear ImGui"};
#ifdef LORASTER_VIEWER
    found.viewer.works = true;
#else
    snprintf(found.viewer.reason, sizeof(found.viewer.reason), "built without GLFW, Dear ImGui or cglm");
#endif
    found.programs[0] = (struct started){.name = LR_HDF5_READER, .purpose = "reads HDF5 files"};
    found.programs[1] =
        (struct started){.name = VERB_BENCH_PROGRAM, .purpose = "measures for loraster bench", .is_for_builders = true};
    for (int k = 0; k < 2; k++)
        found.programs[k].is_there = lr_helper_find(found.programs[k].name, found.programs[k].path);

    warn_of_passed_over(&found.automatic, &found.backends[COMPUTE], "correspondence", args->report);
    warn_of_passed_over(&found.listmode[LISTMODE_AUTO], &found.listmode[LISTMODE_COMPUTE], "listmode", args->report);
    (args->report->json ? print_json : print_findings)(&found);
    /* The trial that determines the exit code. */
    const struct trial *trial = strcmp(backend, "cuda") == 0 ? &found.direct_cuda : &found.automatic;
    for (int k = 0; k < NUM_BACKENDS; k++)
        if (strcmp(found.backends[k].asked, backend) == 0) trial = &found.backends[k];
    if (!trial->works)
        return report_error(args->report, trial->status != LR_OK ? trial->status : LR_NO_DEVICE, "%s", trial->reason);
    return LR_OK;
}

static const struct cli_option options[] = {
    {"--backend", "NAME", "end with exit code 4 unless this backend works (cuda: of the family direct); default auto",
     CLI_WORDS("auto", "cpu", "raster", "compute", "native", "cuda")},
    {"--device", "N", "which usable device; default 0", COMMON_DEVICE_NUMBER},
    {0},
};

const struct cli_verb verb_info = {
    .name = "info",
    .summary = "Says which devices and backends work here, and why others do not.",
    .example = "loraster info --json",
    .groups = {{"requirements", options}},
    .run = run,
};
