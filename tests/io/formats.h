/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Good files of every format that LORaster reads, and their readers: LR_OK, or what was logged. */
#ifndef LR_TEST_IO_FORMATS_H
#define LR_TEST_IO_FORMATS_H

#include "io/files.h"
#include "io/lor_scanner.h"
#include "io/projdata_files.h"

struct setup {
    struct test_folder folder;
    lr_scanner *ring, *even, *octagon;
    lr_lors *ring_lors, *even_lors, *octagon_lors;
    uint64_t seed;
};

static inline lr_scanner *make_octagon(void)
{
    const int crystals[2] = {3, 4};
    const lr_ring ring = {.radius_mm = 60,
                          .modules = 8,
                          .block_crystals = {&crystals[0], &crystals[1]},
                          .pitch_mm = {4, 5},
                          .face_mm = {4, 5},
                          .depth_mm = 10};
    const lr_scanner_params params = {.name = "octagon", .coincidence = {.min_module_difference = 3}};
    return lr_scanner_create_ring(&params, &ring);
}

static inline void write_image(const struct setup *s, const char *path)
{
    const lr_grid grid = {{5, 4, 3}, {2, 3, 4}, {1, 2, 3}};
    lr_image *image = lr_image_create(&grid, NULL);
    (void)s;
    for (int n = 0; n < 60; n++) image->values[n] = (float)n;
    assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
    lr_image_destroy(image);
}

static inline void write_counts(const struct setup *s, const char *path)
{
    lr_lor_data *data = lr_lor_data_create(s->ring_lors, NULL);
    data->values[17] = 3.0f;
    assert_int_equal(lr_lor_data_write(path, s->ring_lors, data, NULL), LR_OK);
    lr_lor_data_destroy(data);
}

static inline void write_projection_data(const struct setup *s, const char *path)
{
    lr_lor_data *data = numbered(s->even_lors);
    assert_int_equal(lr_lor_data_write(path, s->even_lors, data, NULL), LR_OK);
    lr_lor_data_destroy(data);
}

static inline void write_matrix(const struct setup *s, const char *path)
{
    const lr_grid grid = {{3, 2, 1}, {2, 3, 4}, {0, 0, 0}};
    const lr_matrix_writer_params params = {.path = path,
                                            .format = strstr(path, ".npz") != NULL ? LR_MATRIX_NPZ : LR_MATRIX_HDF5,
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

static inline void write_scanner(const struct setup *s, const char *path)
{
    assert_int_equal(lr_scanner_write(path, s->ring, NULL), LR_OK);
}

/* One crystal a line; the second rings are counted on. */
static inline void write_map(const struct setup *s, const char *path)
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
static inline void write_safir(const struct setup *s, const char *path)
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

static inline void write_siemens(const struct setup *s, const char *path)
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
        for (unsigned b = 0; b < 4; b++) words[4 * k + b] = (unsigned char)(word >> (8 * b));
    }
    bytes_write(path, words, sizeof(words));
    folder_file(&s->folder, text, "good.hdr");
    bytes_write(text, header, sizeof(header) - 1);
}

static inline void write_events(const struct setup *s, const char *path)
{
    lr_lor_data *data = lr_lor_data_create(s->ring_lors, NULL);
    for (int n = 0; n < 20; n++) data->values[n] = 1.0f;
    const lr_events_writer_params params = {.path = path, .lors = s->ring_lors};
    lr_events_writer *writer = lr_events_writer_create(&params);
    assert_non_null(writer);
    const lr_event_sink sink = lr_events_writer_sink(writer);
    const lr_list_params list = {.lors = s->ring_lors, .data = data, .duration_s = 1, .seed = 3};
    assert_int_equal(lr_events_from_counts(&list, &sink), LR_OK);
    assert_int_equal(lr_events_writer_finish(writer), LR_OK);
    lr_lor_data_destroy(data);
}

static inline void write_values(const struct setup *s, const char *path)
{
    const int64_t shape = 36;
    float values[36];
    (void)s;
    for (int n = 0; n < 36; n++) values[n] = (float)n;
    if (strstr(path, ".npy") != NULL) {
        assert_int_equal(lr_npy_write(path, &(lr_array){values, &shape, 1}, NULL), LR_OK);
        return;
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int n = 0; n < 36; n++) fprintf(file, "%d.5%s", n, n % 9 == 8 ? "\n" : " ");
    fclose(file);
}

static inline void write_scanner_block(const struct setup *s, const char *path)
{
    (void)s;
    static const char text[] = "!INTERFILE :=\noriginating system := none\nScanner parameters :=\n"
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

static inline lr_status read_image(const struct setup *s, const char *path, struct test_log *log)
{
    const lr_grid grid = {{5, 4, 3}, {2, 3, 4}, {1, 2, 3}};
    (void)s;
    lr_image *image = lr_image_read_on(path, &grid, &log->log);
    const bool good = image != NULL;
    lr_image_destroy(image);
    return good ? LR_OK : log->status;
}

static inline lr_status read_data(const lr_lors *lors, const char *path, struct test_log *log)
{
    lr_lor_data *data = lr_lor_data_read(path, lors, &log->log);
    const bool good = data != NULL;
    lr_lor_data_destroy(data);
    return good ? LR_OK : log->status;
}

static inline lr_status read_counts(const struct setup *s, const char *path, struct test_log *log)
{
    return read_data(s->ring_lors, path, log);
}

static inline lr_status read_projection_data(const struct setup *s, const char *path, struct test_log *log)
{
    return read_data(s->even_lors, path, log);
}

static inline lr_status drop_row(void *user, const lr_row *row)
{
    *(int64_t *)user += row->count;
    return LR_OK;
}

static inline lr_status read_matrix(const struct setup *s, const char *path, struct test_log *log)
{
    int64_t elements = 0;
    const lr_row_sink sink = {drop_row, &elements};
    lr_matrix_file *file = lr_matrix_file_open(path, &log->log);
    if (file == NULL) return log->status;
    lr_status status = lr_matrix_file_check_scanner(file, s->ring_lors);
    if (status == LR_OK) status = lr_matrix_file_rows(file, &sink, NULL);
    lr_matrix_file_close(file);
    return status;
}

static inline lr_status scanner_status(lr_scanner *scanner, const struct test_log *log)
{
    const bool good = scanner != NULL;
    lr_scanner_destroy(scanner);
    return good ? LR_OK : log->status;
}

static inline lr_status read_scanner(const struct setup *s, const char *path, struct test_log *log)
{
    (void)s;
    return scanner_status(lr_scanner_read(path, &log->log), log);
}

static inline lr_status read_scanner_hdf5(const struct setup *s, const char *path, struct test_log *log)
{
    (void)s;
    return scanner_status(lr_scanner_read_hdf5(path, &log->log), log);
}

static inline lr_status drop_events(void *user, const lr_event *events, int64_t count)
{
    (void)events;
    *(int64_t *)user += count;
    return LR_OK;
}

/* companion: in the folder; "" = none. */
static inline lr_status read_list(const struct setup *s, const lr_events_source *source, const char *companion)
{
    int64_t count = 0;
    char path[160];
    const lr_event_sink sink = {.take = drop_events, .user = &count};
    lr_events_source with = *source;
    with.companion = companion[0] != '\0' ? folder_file(&s->folder, path, companion) : NULL;
    return lr_events_read(&with, &sink, NULL);
}

static inline lr_status read_safir(const struct setup *s, const char *path, struct test_log *log)
{
    const lr_events_source source = {.path = path, .format = LR_EVENTS_SAFIR, .scanner = s->ring, .log = &log->log};
    return read_list(s, &source, "good.txt");
}

static inline lr_status read_siemens(const struct setup *s, const char *path, struct test_log *log)
{
    const lr_events_source source = {
        .path = path, .format = LR_EVENTS_SIEMENS, .scanner = s->octagon, .log = &log->log};
    return read_list(s, &source, "good.hdr");
}

static inline lr_status read_petsird(const struct setup *s, const char *path, struct test_log *log)
{
    const lr_events_source source = {.path = path, .format = LR_EVENTS_PETSIRD, .scanner = s->ring, .log = &log->log};
    return read_list(s, &source, "");
}

static inline lr_status read_castor(const struct setup *s, const char *path, struct test_log *log)
{
    const lr_events_source source = {.path = path, .format = LR_EVENTS_CASTOR, .scanner = s->ring, .log = &log->log};
    return read_list(s, &source, "");
}

static inline lr_status read_values(const struct setup *s, const char *path, struct test_log *log)
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

/* --- what they are of --- */

static inline int set_up(void **state)
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

static inline int tear_down(void **state)
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

#endif
