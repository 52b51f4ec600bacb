/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Every reader of files, and all that may stand where a file should: nothing, a folder, links,
 * an empty file, the first k/64 of a good one, random bytes, changed bytes, huge numbers. It gives
 * what it promises or a sentence that names the file; and never takes more memory at once than 64
 * times what there is to read and 2 MiB. HDF5's library has a process and a limit of its own. */
#define _XOPEN_SOURCE 700 /* symlink, setenv */
#include "io/files.h"
#include "io/lor_scanner.h"
#include "io/projdata_files.h"

#include "io/notes.h"

#include <ctype.h>

/* --- the largest allocation of LORaster's own code; the linker puts these in the place of malloc --- */

static size_t largest_bytes;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *block, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *block, size_t bytes);

static void note_bytes(size_t bytes)
{
    largest_bytes = bytes > largest_bytes ? bytes : largest_bytes;
}

void *__wrap_malloc(size_t bytes)
{
    note_bytes(bytes);
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    note_bytes(count * bytes);
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *block, size_t bytes)
{
    note_bytes(bytes);
    return __real_realloc(block, bytes);
}

/* --- good files --- */

struct setup {
    struct test_folder folder;
    lr_scanner *ring, *even, *octagon;
    lr_lors *ring_lors, *even_lors, *octagon_lors;
    uint64_t seed;
};

static lr_scanner *make_octagon(void)
{
    const int crystals[2] = {3, 4};
    const lr_ring ring = {.radius_mm = 60,
                          .modules = 8,
                          .block_crystals = {&crystals[0], &crystals[1]},
                          .pitch_mm = {4, 5},
                          .face_mm = {4, 5},
                          .depth_mm = 10};
    const lr_scanner_params params = {.name = "octagon",
                                      .coincidence = {.min_module_difference = 3}};
    return lr_scanner_create_ring(&params, &ring);
}

static void write_image(const struct setup *s, const char *path)
{
    const lr_grid grid = {{5, 4, 3}, {2, 3, 4}, {1, 2, 3}};
    lr_image *image = lr_image_create(&grid, NULL);
    (void)s;
    for (int n = 0; n < 60; n++) {
        image->values[n] = (float)n;
    }
    assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
    lr_image_destroy(image);
}

static void write_counts(const struct setup *s, const char *path)
{
    lr_lor_data *data = lr_lor_data_create(s->ring_lors, NULL);
    data->values[17] = 3.0f;
    assert_int_equal(lr_lor_data_write(path, s->ring_lors, data, NULL), LR_OK);
    lr_lor_data_destroy(data);
}

static void write_projection_data(const struct setup *s, const char *path)
{
    lr_lor_data *data = numbered(s->even_lors);
    assert_int_equal(lr_lor_data_write(path, s->even_lors, data, NULL), LR_OK);
    lr_lor_data_destroy(data);
}

static void write_matrix(const struct setup *s, const char *path)
{
    const lr_grid grid = {{3, 2, 1}, {2, 3, 4}, {0, 0, 0}};
    const lr_matrix_writer_params params = {.path = path,
                                            .format = strstr(path, ".npz") != NULL ? LR_MATRIX_NPZ
                                                                                   : LR_MATRIX_HDF5,
                                            .lors = s->ring_lors,
                                            .grid = &grid,
                                            .end = 6,
                                            .description = "exact",
                                            .compress = strstr(path, "packed") != NULL ? 6 : 0};
    lr_matrix_writer *writer = lr_matrix_writer_create(&params);
    assert_non_null(writer);
    const lr_row_sink sink = lr_matrix_writer_sink(writer);
    const int64_t lors[3] = {1, 5, 70};
    const double probabilities[3] = {0.25, 0.5, 0.125};
    for (int64_t row = 0; row < 6; row++) {
        const lr_row given = {row, 3, lors, probabilities};
        assert_int_equal(sink.take(sink.user, &given), LR_OK);
    }
    assert_int_equal(lr_matrix_writer_finish(writer), LR_OK);
}

static void write_scanner(const struct setup *s, const char *path)
{
    assert_int_equal(lr_scanner_write(path, s->ring, NULL), LR_OK);
}

/* One crystal a line; the second rings are counted on. */
static void write_map(const struct setup *s, const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("# depth_mm: 10\n# face_mm: 3.5 4.5\n", file);
    for (int m = 0; m < 6; m++) {
        for (int n = 0; n < 6; n++) {
            double at[3];
            lr_module_crystal_centre(&s->ring->modules[m], n % 3, n / 3, at);
            fprintf(file, "%d %d %.4f %.4f %.4f\n", n / 3, 3 * m + n % 3, at[0], at[1], at[2]);
        }
    }
    assert_int_equal(fclose(file), 0);
}

/* Record k is a prompt of the detectors k and k + 9, of the rings 0 and 1. */
static void write_safir(const struct setup *s, const char *path)
{
    unsigned char bytes[32 + 8 * 9] = "SAFIR CListModeData";
    char map[160];
    for (int k = 0; k < 9; k++) {
        unsigned char *record = bytes + 32 + 8 * k;
        record[1] = 1;
        record[2] = (unsigned char)k;
        record[4] = (unsigned char)(k + 9);
    }
    bytes_write(path, bytes, sizeof(bytes));
    write_map(s, folder_file(&s->folder, map, "good.txt"));
}

static void write_siemens(const struct setup *s, const char *path)
{
    static const char header[] = "!INTERFILE:=\ndata format := CoincidenceList\n"
                                 "number of rings:=4\n%number of projections:=20\n"
                                 "%number of views := 16\n%maximum ring difference:=2\n"
                                 "%axial_compression:=1\n"
                                 "%LM event and tag words format (bits):=32\n";
    unsigned char words[4 * 40];
    char text[160];
    for (unsigned k = 0; k < 40; k++) {
        const unsigned word = (k % 4 == 0 ? 0x80000000u : 0x40000000u) | (k * 29 + 17);
        for (unsigned b = 0; b < 4; b++) {
            words[4 * k + b] = (unsigned char)(word >> (8 * b));
        }
    }
    bytes_write(path, words, sizeof(words));
    folder_file(&s->folder, text, "good.hdr");
    bytes_write(text, header, sizeof(header) - 1);
}

static void write_events(const struct setup *s, const char *path)
{
    lr_lor_data *data = lr_lor_data_create(s->ring_lors, NULL);
    for (int n = 0; n < 20; n++) {
        data->values[n] = 1.0f;
    }
    const lr_events_writer_params params = {.path = path, .lors = s->ring_lors};
    lr_events_writer *writer = lr_events_writer_create(&params);
    assert_non_null(writer);
    const lr_event_sink sink = lr_events_writer_sink(writer);
    const lr_list_params list = {.lors = s->ring_lors, .data = data, .duration_s = 1, .seed = 3};
    assert_int_equal(lr_events_from_counts(&list, &sink), LR_OK);
    assert_int_equal(lr_events_writer_finish(writer), LR_OK);
    lr_lor_data_destroy(data);
}

static void write_values(const struct setup *s, const char *path)
{
    const int64_t shape = 36;
    float values[36];
    (void)s;
    for (int n = 0; n < 36; n++) {
        values[n] = (float)n;
    }
    if (strstr(path, ".npy") != NULL) {
        assert_int_equal(lr_npy_write(path, &(lr_array){values, &shape, 1}, NULL), LR_OK);
        return;
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int n = 0; n < 36; n++) {
        fprintf(file, "%d.5%s", n, n % 9 == 8 ? "\n" : " ");
    }
    fclose(file);
}

static void write_scanner_block(const struct setup *s, const char *path)
{
    (void)s;
    static const char text[] =
        "!INTERFILE :=\noriginating system := none\nScanner parameters :=\n"
        "Scanner type := unknown\nNumber of rings := 4\nNumber of detectors per ring := 64\n"
        "Inner ring diameter (cm) := 16.3\nAverage depth of interaction (cm) := 0.5\n"
        "Distance between rings (cm) := 0.5\nDefault bin size (cm) := 0.2\n"
        "Maximum number of non-arc-corrected bins := 41\n"
        "Number of blocks per bucket in transaxial direction := 1\n"
        "Number of blocks per bucket in axial direction := 1\n"
        "Number of crystals per block in axial direction := 4\n"
        "Number of crystals per block in transaxial direction := 4\n"
        "Number of detector layers := 1\nend scanner parameters :=\n!END OF INTERFILE :=\n";
    bytes_write(path, text, sizeof(text) - 1);
}

/* --- readers: LR_OK, or what was logged --- */

static lr_status read_image(const struct setup *s, const char *path, struct test_log *log)
{
    const lr_grid grid = {{5, 4, 3}, {2, 3, 4}, {1, 2, 3}};
    (void)s;
    lr_image *image = lr_image_read_on(path, &grid, &log->log);
    const bool good = image != NULL;
    lr_image_destroy(image);
    return good ? LR_OK : log->status;
}

static lr_status read_data(const lr_lors *lors, const char *path, struct test_log *log)
{
    lr_lor_data *data = lr_lor_data_read(path, lors, &log->log);
    const bool good = data != NULL;
    lr_lor_data_destroy(data);
    return good ? LR_OK : log->status;
}

static lr_status read_counts(const struct setup *s, const char *path, struct test_log *log)
{
    return read_data(s->ring_lors, path, log);
}

static lr_status read_projection_data(const struct setup *s, const char *path, struct test_log *log)
{
    return read_data(s->even_lors, path, log);
}

static lr_status drop_row(void *user, const lr_row *row)
{
    *(int64_t *)user += row->count;
    return LR_OK;
}

static lr_status read_matrix(const struct setup *s, const char *path, struct test_log *log)
{
    int64_t elements = 0;
    const lr_row_sink sink = {drop_row, &elements};
    lr_matrix_file *file = lr_matrix_file_open(path, &log->log);
    if (file == NULL) {
        return log->status;
    }
    lr_status status = lr_matrix_file_check_scanner(file, s->ring_lors);
    if (status == LR_OK) {
        status = lr_matrix_file_rows(file, &sink, NULL);
    }
    lr_matrix_file_close(file);
    return status;
}

static lr_status scanner_status(lr_scanner *scanner, const struct test_log *log)
{
    const bool good = scanner != NULL;
    lr_scanner_destroy(scanner);
    return good ? LR_OK : log->status;
}

static lr_status read_scanner(const struct setup *s, const char *path, struct test_log *log)
{
    (void)s;
    return scanner_status(lr_scanner_read(path, &log->log), log);
}

static lr_status read_scanner_hdf5(const struct setup *s, const char *path, struct test_log *log)
{
    (void)s;
    return scanner_status(lr_scanner_read_hdf5(path, &log->log), log);
}

static lr_status drop_events(void *user, const lr_event *events, int64_t count)
{
    (void)events;
    *(int64_t *)user += count;
    return LR_OK;
}

/* companion: in the folder; "" = none. */
static lr_status read_list(const struct setup *s, const lr_events_source *source,
                           const char *companion)
{
    int64_t count = 0;
    char path[160];
    const lr_event_sink sink = {drop_events, &count};
    lr_events_source with = *source;
    with.companion = companion[0] != '\0' ? folder_file(&s->folder, path, companion) : NULL;
    return lr_events_read(&with, &sink, NULL);
}

static lr_status read_safir(const struct setup *s, const char *path, struct test_log *log)
{
    const lr_events_source source = {path, LR_EVENTS_SAFIR, NULL, s->ring, &log->log};
    return read_list(s, &source, "good.txt");
}

static lr_status read_siemens(const struct setup *s, const char *path, struct test_log *log)
{
    const lr_events_source source = {path, LR_EVENTS_SIEMENS, NULL, s->octagon, &log->log};
    return read_list(s, &source, "good.hdr");
}

static lr_status read_petsird(const struct setup *s, const char *path, struct test_log *log)
{
    const lr_events_source source = {path, LR_EVENTS_PETSIRD, NULL, s->ring, &log->log};
    return read_list(s, &source, "");
}

static lr_status read_castor(const struct setup *s, const char *path, struct test_log *log)
{
    const lr_events_source source = {path, LR_EVENTS_CASTOR, NULL, s->ring, &log->log};
    return read_list(s, &source, "");
}

static lr_status read_values(const struct setup *s, const char *path, struct test_log *log)
{
    float values[36];
    return lr_crystal_values_read(path, s->ring, values, &log->log);
}

/* --- formats --- */

struct format {
    const char *name;   /* the file that is named; in the folder */
    const char *spoilt; /* which of its files is damaged; NULL = that one */
    void (*write)(const struct setup *s, const char *path);
    lr_status (*read)(const struct setup *s, const char *path, struct test_log *log);
};

static const struct format formats[] = {
    {"good.nii", NULL, write_image, read_image},
    {"good.nii.gz", NULL, write_image, read_image},
    {"good.hv", NULL, write_image, read_image},
    {"good.hv", "good.v", write_image, read_image},
    {"good.hdr", NULL, write_image, read_image},
    {"good.hdr", "good.img", write_image, read_image},
    {"good.mhd", NULL, write_image, read_image},
    {"good.mhd", "good.raw", write_image, read_image},
    {"good.mha", NULL, write_image, read_image},
    {"good.npy", NULL, write_image, read_image},
    {"good.h5", NULL, write_counts, read_counts},
    {"good.h5", NULL, write_counts, read_scanner_hdf5},
    {"good.hs", NULL, write_projection_data, read_projection_data},
    {"good.hs", "good.s", write_projection_data, read_projection_data},
    {"matrix.h5", NULL, write_matrix, read_matrix},
    {"packed.h5", NULL, write_matrix, read_matrix},
    {"good.npz", NULL, write_matrix, read_matrix},
    {"good.yaml", NULL, write_scanner, read_scanner},
    {"good.geom", NULL, write_scanner, read_scanner},
    {"good.hscan", NULL, write_scanner, read_scanner},
    {"good.hscan", "good.lut", write_scanner, read_scanner},
    {"good.petsird", NULL, write_scanner, read_scanner},
    {"block.hs", NULL, write_scanner_block, read_scanner},
    {"crystal_map.txt", NULL, write_map, read_scanner},
    {"good.safir", NULL, write_safir, read_safir},
    {"good.safir", "good.txt", write_safir, read_safir},
    {"good.l", NULL, write_siemens, read_siemens},
    {"good.l", "good.hdr", write_siemens, read_siemens},
    {"events.petsird", NULL, write_events, read_petsird},
    {"good.Cdh", NULL, write_events, read_castor},
    {"good.Cdh", "good.Cdf", write_events, read_castor},
    {"values.npy", NULL, write_values, read_values},
    {"values.txt", NULL, write_values, read_values},
};
enum { NUM_FORMATS = sizeof(formats) / sizeof(formats[0]) };

/* A format whose files are in the folder, and the good bytes of the one that is damaged. */
struct patient {
    struct setup *s;
    const struct format *format;
    char path[160], spoilt[160];
    unsigned char *bytes;
    size_t count;
};

/* LR_OK or LR_BAD_INPUT with a sentence that names the folder's file. */
static lr_status read_patient(const struct patient *patient, const char *what)
{
    struct test_log log;
    struct stat facts;
    test_log_init(&log);
    const size_t there = stat(patient->spoilt, &facts) == 0 ? (size_t)facts.st_size : 0;
    const size_t allowed = 64 * (there + patient->count) + (2u << 20);
    largest_bytes = 0;
    const lr_status status = patient->format->read(patient->s, patient->path, &log);
    const size_t taken = largest_bytes;
    if (status == LR_OK ? log.status != LR_OK
                        : status != LR_BAD_INPUT || log.status != LR_BAD_INPUT ||
                              strstr(log.error, patient->s->folder.path) == NULL) {
        fail_msg("%s of %s, %s: status %d, sentence \"%s\"", patient->spoilt, patient->path, what,
                 (int)status, log.error);
    }
    if (taken > allowed) {
        fail_msg("%s of %s, %s: %zu bytes at once for %zu", patient->spoilt, patient->path, what,
                 taken, there);
    }
    return status;
}

static void assert_refused(const struct patient *patient, const char *what)
{
    if (read_patient(patient, what) != LR_BAD_INPUT) {
        fail_msg("%s of %s, %s: it was read", patient->spoilt, patient->path, what);
    }
}

static void begin(struct patient *patient, struct setup *s, const struct format *format)
{
    *patient = (struct patient){.s = s, .format = format};
    folder_file(&s->folder, patient->path, format->name);
    folder_file(&s->folder, patient->spoilt,
                format->spoilt != NULL ? format->spoilt : format->name);
    format->write(s, patient->path);
    patient->bytes = bytes_read(patient->spoilt, &patient->count);
    if (read_patient(patient, "whole") != LR_OK) {
        fail_msg("%s cannot be read at all", patient->path);
    }
}

static void end(struct patient *patient)
{
    free(patient->bytes);
    folder_visit(&patient->s->folder, true);
}

/* HDF5 starts a process for each file, which costs much under a sanitizer: fewer of these. */
static size_t step_of(const struct patient *patient)
{
    return strstr(patient->spoilt, ".h5") != NULL ? 5 : 1;
}

/* --- what stands where a file should --- */

static void test_other_things(void **state)
{
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        char other[160];
        begin(&patient, *state, &formats[n]);
        remove(patient.spoilt);
        assert_refused(&patient, "missing");
        assert_int_equal(mkdir(patient.spoilt, 0777), 0);
        assert_refused(&patient, "a folder");
        assert_int_equal(rmdir(patient.spoilt), 0);
        assert_int_equal(symlink("nowhere", patient.spoilt), 0);
        assert_refused(&patient, "a link to nothing");
        remove(patient.spoilt);
        assert_int_equal(symlink(strrchr(patient.spoilt, '/') + 1, patient.spoilt), 0);
        assert_refused(&patient, "a link to itself");
        remove(patient.spoilt);
        assert_int_equal(symlink(".", patient.spoilt), 0);
        assert_refused(&patient, "a link to a folder");
        remove(patient.spoilt);
        bytes_write(patient.spoilt, "", 0);
        assert_refused(&patient, "empty");
        remove(patient.spoilt);
        bytes_write(folder_file(&patient.s->folder, other, "other"), patient.bytes, patient.count);
        assert_int_equal(symlink("other", patient.spoilt), 0);
        assert_int_equal(read_patient(&patient, "a link to the good one"), LR_OK);
        end(&patient);
    }
}

/* Text may lose its end and still be whole; what is binary may not. */
static void test_truncations(void **state)
{
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        int num_read = 0;
        begin(&patient, *state, &formats[n]);
        for (size_t k = 0; k < 64; k++) {
            bytes_write(patient.spoilt, patient.bytes, patient.count * k / 64);
            char what[32];
            snprintf(what, sizeof(what), "%zu/64", k);
            num_read += read_patient(&patient, what) == LR_OK;
        }
        bool is_text = true;
        for (size_t k = 0; k < patient.count; k++) {
            is_text = is_text && (isprint(patient.bytes[k]) || isspace(patient.bytes[k]));
        }
        /* records of list mode, which nobody has counted, may end anywhere between two */
        const bool is_words = strcmp(patient.spoilt, patient.path) == 0 &&
                              (strstr(patient.path, ".l") || strstr(patient.path, ".safir"));
        if (num_read > 0 && !is_text && !is_words) {
            fail_msg("%s of %s: %d truncations of 64 were read", patient.spoilt, patient.path,
                     num_read);
        }
        end(&patient);
    }
}

static void test_random_bytes(void **state)
{
    struct setup *s = *state;
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        begin(&patient, s, &formats[n]);
        for (int k = 0; k < 30; k++) {
            unsigned char noise[4096];
            const size_t count = 1 + (size_t)(test_random(&s->seed) * 4095);
            for (size_t b = 0; b < count; b++) {
                noise[b] = (unsigned char)(test_random(&s->seed) * 256);
            }
            bytes_write(patient.spoilt, noise, count);
            (void)read_patient(&patient, "random bytes");
        }
        end(&patient);
    }
}

static void test_changed_bytes(void **state)
{
    struct setup *s = *state;
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        begin(&patient, s, &formats[n]);
        unsigned char *spoilt = malloc(patient.count);
        for (size_t k = 0; k < 200; k += step_of(&patient)) {
            memcpy(spoilt, patient.bytes, patient.count);
            for (size_t m = 0; m < 1 + k / 5 % 8; m++) {
                spoilt[(size_t)(test_random(&s->seed) * (double)patient.count)] =
                    (unsigned char)(test_random(&s->seed) * 256);
            }
            bytes_write(patient.spoilt, spoilt, patient.count);
            (void)read_patient(&patient, "changed bytes");
        }
        free(spoilt);
        end(&patient);
    }
}

/* Each number of a text becomes a huge one, and each place of a binary head in turn. */
static void test_huge_numbers(void **state)
{
    static const char digits[] = "99999999999";
    static const unsigned char ones[2][8] = {{0xff, 0xff, 0xff, 0x7f},
                                             {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}};
    for (int n = 0; n < NUM_FORMATS; n++) {
        struct patient patient;
        begin(&patient, *state, &formats[n]);
        unsigned char *spoilt = malloc(patient.count + sizeof(digits) + 8);
        for (size_t k = 0; k < patient.count && k < 400; k += step_of(&patient)) {
            size_t last = k;
            while (last < patient.count && isdigit(patient.bytes[last])) {
                last++;
            }
            memcpy(spoilt, patient.bytes, patient.count);
            size_t count = patient.count;
            if (last > k && (k == 0 || !isdigit(patient.bytes[k - 1]))) {
                memcpy(spoilt + k, digits, sizeof(digits) - 1);
                memcpy(spoilt + k + sizeof(digits) - 1, patient.bytes + last, count - last);
                count += sizeof(digits) - 1 - (last - k);
            } else {
                const size_t width = 4 << (k % 2);
                memcpy(spoilt + k, ones[k % 2], width);
                count = k + width > count ? k + width : count;
            }
            bytes_write(patient.spoilt, spoilt, count);
            (void)read_patient(&patient, "a huge number");
        }
        free(spoilt);
        end(&patient);
    }
}

/* Notes of an earlier run cost only themselves. */
static void test_notes(void **state)
{
    struct setup *s = *state;
    struct test_log log;
    char path[160];
    test_log_init(&log);
    folder_file(&s->folder, path, "speeds.txt");
    assert_int_equal(setenv("LORASTER_CACHE", s->folder.path, 1), 0);
    for (int k = 0; k < 200; k++) {
        struct lr_note notes[2] = {{"one", 1.5, true}, {"another", 2.5, true}};
        remove(path);
        lr_notes_keep(notes, 2, &log.log);
        size_t count;
        unsigned char *bytes = bytes_read(path, &count);
        assert_true(count > 20);
        for (int m = 0; m < k; m++) {
            bytes[(size_t)(test_random(&s->seed) * (double)count)] =
                (unsigned char)(test_random(&s->seed) * 256);
        }
        bytes_write(path, bytes, k % 2 ? count : count * (size_t)k / 200);
        free(bytes);
        notes[0].is_known = notes[1].is_known = false;
        lr_notes_find(notes, 2, &log.log);
        assert_true(!notes[0].is_known || (isfinite(notes[0].value) && notes[0].value > 0));
        assert_int_equal(log.status, LR_OK);
    }
    remove(path);
    assert_int_equal(setenv("LORASTER_CACHE", "off", 1), 0);
}

static int set_up(void **state)
{
    static struct setup s;
    folder_init(&s.folder);
    s.seed = test_seed();
    s.ring = small_ring(60.0, 0.0);
    s.even = even_ring(8, 0.0);
    s.octagon = make_octagon();
    s.ring_lors = lors_of(s.ring);
    s.even_lors = lors_of(s.even);
    s.octagon_lors = lors_of(s.octagon);
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    struct setup *s = *state;
    lr_lors_destroy(s->ring_lors);
    lr_lors_destroy(s->even_lors);
    lr_lors_destroy(s->octagon_lors);
    lr_scanner_destroy(s->ring);
    lr_scanner_destroy(s->even);
    lr_scanner_destroy(s->octagon);
    folder_finish(&s->folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_things), cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_random_bytes), cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_huge_numbers), cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
