/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * libFuzzer targets, one per reader: the bytes of the fuzzer are a file of its format, and the reader must return a
 * result or one sentence about bad input. Each row of `targets` becomes a program fuzz_NAME, compiled with its name
 * as LR_FUZZ_TARGET; tools/fuzz.sh runs them. They are not part of CTest. */
#include "io/events/petsird.h"
#include "io/files/yaml.h"
#include "io/matrix/store.h"
#include "io/matrix/writer.h"
#include "io/scanners/scanner_formats.h"
#include "io/sessions/session.h"

#include <lr/direct.h>
#include <lr/lr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

struct target {
    const char *name;
    void (*run)(const struct target *target, const uint8_t *bytes, size_t count);
    const char *file; /* file name; its ending tells the reader the format */
    lr_scanner *(*read_scanner)(const char *path, const lr_log *log);
};

/* The status of the last error since the last file was written. */
static lr_status status;

static void note(void *user, lr_log_level level, lr_status found, const char *sentence)
{
    (void)sentence;
    if (level == LR_LOG_ERROR) *(lr_status *)user = found;
}

static const lr_log notes = {note, &status};

/* Writes the bytes to NAME in this process's folder. The returned path is valid until two more files have been
   written. */
static const char *make_file(const char *name, const void *bytes, size_t count)
{
    static char folder[] = "/tmp/lr_fuzz_XXXXXX", paths[2][64];
    static int made = 0, turn = 0;
    if (!made && mkdtemp(folder) == NULL) abort();
    made = 1;
    turn = !turn;
    snprintf(paths[turn], sizeof(paths[0]), "%s/%s", folder, name);
    FILE *file = fopen(paths[turn], "wb");
    if (file == NULL || fwrite(bytes, 1, count, file) != count || fclose(file) != 0) abort();
    status = LR_OK;
    return paths[turn];
}

/* LORs of the scanner whose files tools/fuzz.sh uses as seeds. They are never destroyed. */
static const lr_lors *panels(void)
{
    static lr_lors *lors;
    if (lors == NULL) {
        lr_scanner *scanner = lr_scanner_read("two-opposed-modules", NULL);
        lors = scanner != NULL ? lr_lors_create(scanner, NULL) : NULL;
        if (lors == NULL) abort();
    }
    return lors;
}

/* A scanner read from YAML, which is never destroyed. */
static lr_scanner *ring_of(const char *yaml)
{
    static lr_scanner *scanner;
    if (scanner == NULL) scanner = lr_scanner_parse(lr_yaml_parse("ring", yaml, (int64_t)strlen(yaml), NULL));
    if (scanner == NULL) abort();
    return scanner;
}

/* Checks that a reader's status agrees with its result: a result and LR_OK, or no result and LR_BAD_INPUT. */
static void expect(bool has_result)
{
    if (has_result ? status != LR_OK : status != LR_BAD_INPUT) abort();
}

/* --- images --- */

/* The bytes are the header and, where the header names "data", also the voxels. */
static void read_image(const struct target *target, const uint8_t *bytes, size_t count)
{
    const bool is_packed = count > 1 && bytes[0] == 0x1f && bytes[1] == 0x8b;
    const char *name = strcmp(target->file, "a.nii") == 0 && is_packed ? "a.nii.gz" : target->file;
    const lr_grid grid = {{3, 2, 1}, {1, 1, 1}, {0, 0, 0}};
    make_file("data", bytes, count);
    lr_image *image = lr_image_read_on(make_file(name, bytes, count), &grid, &notes);
    if (image == NULL && status != LR_BAD_INPUT) abort();
    lr_image_destroy(image);
}

/* --- scanners, and other files that are read as a whole --- */

static void judge_scanner(lr_scanner *scanner)
{
    expect(scanner != NULL);
    lr_scanner_destroy(scanner);
}

static void read_scanner(const struct target *target, const uint8_t *bytes, size_t count)
{
    judge_scanner(target->read_scanner(make_file(target->file, bytes, count), &notes));
}

static void read_yaml(const struct target *target, const uint8_t *bytes, size_t count)
{
    judge_scanner(lr_scanner_parse(lr_yaml_parse(target->file, (const char *)bytes, (int64_t)count, &notes)));
}

/* The first zero byte separates the header from the table. */
static void read_look_up_table(const struct target *target, const uint8_t *bytes, size_t count)
{
    const uint8_t *zero = count > 0 ? memchr(bytes, 0, count) : NULL;
    const size_t header = zero != NULL ? (size_t)(zero - bytes) : count;
    make_file("x.lut", zero != NULL ? zero + 1 : bytes, zero != NULL ? count - header - 1 : 0);
    read_scanner(target, bytes, header);
}

/* Numbers per crystal: .npy, text and PETSIRD. */
static void read_crystal_values(const struct target *target, const uint8_t *bytes, size_t count)
{
    float values[162];
    const lr_scanner *scanner = panels()->scanner;
    const bool is_petsird = count > 5 && memcmp(bytes, "yardl", 5) == 0;
    const char *name = count > 0 && bytes[0] == 0x93 ? "a.npy" : is_petsird ? "a.petsird" : target->file;
    if (scanner->num_crystals != 162) abort();
    expect(lr_crystal_values_read(make_file(name, bytes, count), scanner, values, &notes) == LR_OK);
}

static void read_histo_images(const struct target *target, const uint8_t *bytes, size_t count)
{
    lr_histo_images *histo = lr_histo_images_read(make_file(target->file, bytes, count), &notes);
    expect(histo != NULL);
    lr_histo_images_destroy(histo);
}

static void read_lor_data(const struct target *target, const uint8_t *bytes, size_t count)
{
    lr_lor_data *data = lr_lor_data_read(make_file(target->file, bytes, count), panels(), &notes);
    expect(data != NULL);
    lr_lor_data_destroy(data);
}

/* The bytes are the header, and also the bins where it names "data", and the crystal map where it names one. */
static void read_projection_data(const struct target *target, const uint8_t *bytes, size_t count)
{
    static lr_lors *lors;
    const char *ring = "name: ring\nring: {radius_mm: 20, modules: 8, first_angle_deg: 90}\n"
                       "module: {crystals: [2, 2], pitch_mm: [4, 4], face_mm: [4, 4], depth_mm: 10}\n";
    if (lors == NULL && (lors = lr_lors_create(ring_of(ring), NULL)) == NULL) abort();
    make_file("data", bytes, count);
    lr_lor_data *data = lr_lor_data_read(make_file(target->file, bytes, count), lors, &notes);
    if (data == NULL && status != LR_BAD_INPUT) abort();
    lr_lor_data_destroy(data);
}

static void read_radial_profiles(const struct target *target, const uint8_t *bytes, size_t count)
{
    const lr_grid grid = lr_grid_centred((const int[3]){9, 9, 9}, (const double[3]){4, 4, 4});
    lr_radial_profiles profiles;
    const bool is_read = lr_radial_profiles_read(make_file(target->file, bytes, count), &profiles, &notes) == LR_OK;
    if (!is_read && status != LR_BAD_INPUT) abort();
    if (!is_read) return;
    const lr_resolution resolution = {.tof_ps = 40, .model = LR_RADIAL_MEASURED, .axial_mm = 4, .measured = &profiles};
    lr_direct_tables *tables = lr_direct_tables_create(
        &(lr_direct_tables_params){.grid = &grid, .kernel = {.resolution = resolution}, .log = &notes});
    if (tables == NULL && status == LR_OK) abort();
    lr_direct_tables_destroy(tables);
    lr_radial_profiles_finish(&profiles);
}

static void read_session(const struct target *target, const uint8_t *bytes, size_t count)
{
    struct lr_view_session session;
    const lr_status read = lr_view_session_read(make_file(target->file, bytes, count), &session, &notes);
    if (read != status || (read != LR_OK && read != LR_BAD_INPUT)) abort();
    if (read == LR_OK && session.num_ranges > LR_SESSION_RANGES) abort();
    lr_view_session_finish(&session);
}

/* --- events --- */

static lr_status drop_events(void *user, const lr_event *events, int64_t count)
{
    (void)events;
    *(int64_t *)user += count;
    return LR_OK;
}

static void read_events(lr_events_source source)
{
    int64_t events = 0;
    const lr_event_sink sink = {.take = drop_events, .user = &events};
    source.log = &notes;
    const lr_status read = lr_events_read(&source, &sink, NULL);
    if (read != status || (read != LR_OK && read != LR_BAD_INPUT)) abort();
}

/* The data file of the header has the same bytes. */
static void read_castor(const struct target *target, const uint8_t *bytes, size_t count)
{
    make_file("a.Cdf", bytes, count);
    read_events((lr_events_source){.path = make_file(target->file, bytes, count), .format = LR_EVENTS_CASTOR});
}

/* The bytes hold events and a scanner. Half of the inputs get magic, version and the schema v0.9.1 in front, so that
 * the fuzzer reaches the code behind these. */
static void read_petsird(const struct target *target, const uint8_t *bytes, size_t count)
{
    const char *schema = lr_petsird_schema_text("0.9.1"), *path;
    const unsigned length = (unsigned)strlen(schema); /* 7 bits per byte */
    if (count > 0 && bytes[0] % 2 == 0 && bytes[0] != 'y') {
        const uint8_t begin[11] = {
            'y', 'a', 'r', 'd', 'l', 1, 0, 0, 0, (uint8_t)(length % 128 + 128), (uint8_t)(length / 128)};
        uint8_t *whole = malloc(sizeof(begin) + length + count);
        if (whole == NULL) abort();
        memcpy(whole, begin, sizeof(begin));
        memcpy(whole + sizeof(begin), schema, length);
        memcpy(whole + sizeof(begin) + length, bytes + 1, count - 1);
        path = make_file(target->file, whole, sizeof(begin) + length + count - 1);
        free(whole);
    } else {
        path = make_file(target->file, bytes, count);
    }
    read_events((lr_events_source){.path = path, .format = LR_EVENTS_PETSIRD});
    status = LR_OK;
    judge_scanner(lr_scanner_read(path, &notes));
}

/* The bytes are list mode first, and then the crystal map of a good list. */
static void read_safir(const struct target *target, const uint8_t *bytes, size_t count)
{
    static char map[162 * 64];
    uint8_t records[40] = "SAFIR CListModeData";
    const lr_scanner *scanner = panels()->scanner;
    size_t used = 0;
    for (int c = 0; c < scanner->num_crystals; c++) { /* one crystal per line, as in STIR's maps */
        double at[3];
        lr_scanner_crystal_centre(scanner, c, at);
        used += (size_t)snprintf(map + used, sizeof(map) - used, "%d %d %.4f %.4f %.4f\n", c % 81 / 9,
                                 c / 81 * 9 + c % 9, at[0], at[1], at[2]);
    }
    lr_events_source source = {.format = LR_EVENTS_SAFIR, .scanner = scanner};
    source.path = make_file(target->file, bytes, count);
    source.companion = make_file("a.map", map, used);
    read_events(source);
    records[32 + 4] = 12; /* crystals: ring 0, detector 0; ring 0, detector 12 */
    source.path = make_file(target->file, records, sizeof(records));
    source.companion = make_file("a.map", bytes, count);
    read_events(source);
}

/* Eight modules of 3 x 4 crystals; good Siemens headers of this scanner have one virtual crystal per module. */
static lr_events_source siemens_source(const char *words, const char *header)
{
    return (lr_events_source){
        .path = words,
        .format = LR_EVENTS_SIEMENS,
        .companion = header,
        .scanner = ring_of("name: octagon\nring: {radius_mm: 60, modules: 8}\nmodule: {crystals: [3, 4], pitch_mm: [4, "
                           "5], face_mm: [4, 5], depth_mm: 10}\ncoincidence: {min_module_difference: 3}\n"),
        .log = &notes};
}

/* The bytes are list-mode words, with a good header. */
static void read_siemens(const struct target *target, const uint8_t *bytes, size_t count)
{
    static const char header[] =
        "!INTERFILE:=\ndata format := CoincidenceList\nnumber of rings:=4\n%number of projections:=20\n"
        "%number of views := 16\n%maximum ring difference:=2\n%axial_compression:=1\n"
        "%LM event and tag words format (bits):=32\n";
    const char *text = make_file("a.l.hdr", header, strlen(header)), *words = make_file(target->file, bytes, count);
    read_events(siemens_source(words, text));
}

/* The bytes are a header, with a list of one word. */
static void read_siemens_header(const struct target *target, const uint8_t *bytes, size_t count)
{
    const char *words = make_file("a.l", (const uint8_t[4]){0}, 4), *text = make_file(target->file, bytes, count);
    const lr_events_source source = siemens_source(words, text);
    if (lr_events_read(&source, NULL, NULL) != status) abort();
}

/* --- matrices --- */

static lr_status take_row(void *user, const lr_row *row)
{
    *(double *)user += row->count > 0 ? row->probability[row->count - 1] : 0.0;
    return LR_OK;
}

static void read_matrix_hdf5(const struct target *target, const uint8_t *bytes, size_t count)
{
    double sum = 0.0;
    const lr_row_sink sink = {take_row, &sum};
    if (count >= 4 && bytes[0] == 'P') return; /* the members of a matrix in .npz */
    lr_matrix_file *file = lr_matrix_file_open(make_file(target->file, bytes, count), &notes);
    expect(file != NULL);
    if (file != NULL) {
        expect(lr_matrix_file_check_scanner(file, panels()) == LR_OK);
        status = LR_OK;
        expect(lr_matrix_file_rows(file, &sink, NULL) == LR_OK);
    }
    lr_matrix_file_close(file);
}

static void read_matrix_npz(const struct target *target, const uint8_t *bytes, size_t count)
{
    const char *path = make_file(target->file, bytes, count);
    struct lr_matrix_source source = {.path = path, .log = &notes};
    const lr_status opened = lr_matrix_npz_open(&source);
    if (source.self != NULL) source.close(source.self);
    if (opened != LR_OK) {
        if (status != LR_BAD_INPUT) abort();
        return;
    }
    const bool is_archive = count > 4 && memcmp(bytes, "PK\3\4", 4) == 0;
    lr_matrix_file *file = is_archive ? lr_matrix_file_open(path, &notes) : NULL;
    double sum = 0.0;
    const lr_row_sink sink = {take_row, &sum};
    if (file != NULL && lr_matrix_file_get_info(file)->num_rows < 100000) (void)lr_matrix_file_rows(file, &sink, NULL);
    lr_matrix_file_close(file);
}

enum { NUM_ROWS = 64 };

/* Leaves the files of a run that was stopped after two rows. */
static void leave_some(const struct lr_matrix_store_params *params)
{
    struct lr_matrix_store store;
    const lr_row row = {0, 3, (const int64_t[]){1, 5, 7}, (const double[]){0.25, 0.5, 0.125}};
    if (lr_matrix_store_open(&store, params) != LR_OK || lr_matrix_store_append(&store, &row, 0.0) != LR_OK ||
        lr_matrix_store_append(&store, &row, 0.0) != LR_OK || lr_matrix_store_checkpoint(&store) != LR_OK)
        abort();
    lr_matrix_store_leave(&store);
}

/* Reads all counts; their number must equal the rows that have been taken. */
static void read_counts(struct lr_matrix_store *store)
{
    struct lr_matrix_counts counts = {.store = store};
    int64_t numbers[8], num = 0, rows = 0;
    do {
        if (lr_matrix_counts_read(&counts, 8, numbers, &num) != LR_OK) return;
        rows += num;
    } while (num > 0);
    if (rows != store->totals.rows) abort();
}

/* The bytes replace what follows the head of TARGET.part-rows: either they are rows of an earlier run, or the run
   begins with the first row. */
static void resume_matrix(const struct target *target, const uint8_t *bytes, size_t count)
{
    static long begin;
    char rows[96];
    const char *path = make_file(target->file, bytes, 0);
    snprintf(rows, sizeof(rows), "%s.part", path);
    remove(rows);
    snprintf(rows, sizeof(rows), "%s.part-rows", path);
    remove(rows);
    struct lr_matrix_store_params params = {.path = path, .key = "a; b", .num_rows = NUM_ROWS, .log = &notes};
    leave_some(&params);
    struct lr_matrix_store store;
    params.resumes = true;
    if (begin == 0 && lr_matrix_store_open(&store, &params) == LR_OK) {
        begin = (long)store.segments_begin;
        lr_matrix_store_leave(&store);
    }
    FILE *file = fopen(rows, "r+b"); /* the bytes overwrite what follows the head */
    if (file == NULL || fseek(file, count > 0 && bytes[0] == 'h' ? 0 : begin, SEEK_SET) != 0 ||
        fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
        abort();
    status = LR_OK;
    const lr_status opened = lr_matrix_store_open(&store, &params);
    if (opened != status || (opened == LR_OK && store.totals.rows > NUM_ROWS)) abort();
    if (opened == LR_OK) {
        read_counts(&store);
        lr_matrix_store_remove(&store);
    }
}

/* CMakeLists.txt, test_corpora.py and tools/fuzz.sh read the names from this table. */
static const struct target targets[] = {
    {"castor", read_castor, "a.Cdh", NULL},
    {"castor_geom", read_scanner, "x.geom", lr_geom_read},
    {"castor_lut", read_look_up_table, "x.hscan", lr_hscan_read},
    {"crystal_values", read_crystal_values, "a.txt", NULL},
    {"histo_images", read_histo_images, "histo.h5", NULL},
    {"image_castor", read_image, "a.hdr", NULL},
    {"image_interfile", read_image, "a.hv", NULL},
    {"image_metaimage", read_image, "a.mha", NULL},
    {"image_nifti", read_image, "a.nii", NULL},
    {"image_npy", read_image, "a.npy", NULL},
    {"lor_hdf5", read_lor_data, "a.h5", NULL},
    {"matrix_hdf5", read_matrix_hdf5, "a.h5", NULL},
    {"matrix_npz", read_matrix_npz, "a.npz", NULL},
    {"matrix_resume", resume_matrix, "a", NULL},
    {"petsird", read_petsird, "a.petsird", NULL},
    {"projdata", read_projection_data, "a.hs", NULL},
    {"radial_profiles", read_radial_profiles, "profiles.yaml", NULL},
    {"safir", read_safir, "a.safir", NULL},
    {"scanner_hdf5", read_scanner, "a.h5", lr_scanner_read_hdf5},
    {"scanner_yaml", read_yaml, "fuzz.yaml", NULL},
    {"siemens", read_siemens, "a.l", NULL},
    {"siemens_header", read_siemens_header, "a.hdr", NULL},
    {"stir_header", read_scanner, "x.hs", lr_stir_header_read},
    {"stir_map", read_scanner, "x.txt", lr_stir_map_read},
    {"view_session", read_session, "fuzz.yaml", NULL},
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const struct target *target = targets;
    while (strcmp(target->name, LR_FUZZ_TARGET) != 0) target++;
    status = LR_OK;
    target->run(target, bytes, count);
    return 0;
}
