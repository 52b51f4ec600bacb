/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Good files of every format that LORaster reads, and their readers, which return LR_OK or the logged status. */
#pragma once

#include "io/lists.h"
#include "io/projdata_files.h"

struct setup {
    struct test_folder folder;
    lr_lors *ring, *even, *octagon;
    uint64_t seed;
};

/* --- writers --- */

static const lr_grid image_grid = {{5, 4, 3}, {2, 3, 4}, {1, 2, 3}};

static inline void write_image(const struct setup *s, const char *path)
{
    lr_image *image = keep(lr_image_create(&image_grid, NULL));
    for (int n = 0; n < 60; n++) image->values[n] = (float)n;
    assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
}

static inline void write_counts(const struct setup *s, const char *path)
{
    lr_lor_data *data = keep(lr_lor_data_create(s->ring, NULL));
    data->values[17] = 3.0f;
    assert_int_equal(lr_lor_data_write(path, s->ring, data, NULL), LR_OK);
}

static inline void write_projection_data(const struct setup *s, const char *path)
{
    assert_int_equal(lr_lor_data_write(path, s->even, numbered(s->even), NULL), LR_OK);
}

static inline void write_matrix(const struct setup *s, const char *path)
{
    const lr_grid grid = {{3, 2, 1}, {2, 3, 4}, {0, 0, 0}};
    lr_matrix_writer_params params = {.path = path, .lors = s->ring, .grid = &grid, .end = 6, .description = "exact"};
    params.format = strstr(path, ".npz") != NULL ? LR_MATRIX_NPZ : LR_MATRIX_HDF5;
    params.compress = strstr(path, "packed") != NULL ? 6 : 0;
    lr_matrix_writer *writer = lr_matrix_writer_create(&params);
    const lr_row_sink sink = lr_matrix_writer_sink(writer);
    for (int64_t row = 0; row < 6; row++) {
        const lr_row given = {row, 3, (const int64_t[]){1, 5, 70}, (const double[]){0.25, 0.5, 0.125}};
        assert_int_equal(sink.take(sink.user, &given), LR_OK);
    }
    assert_int_equal(lr_matrix_writer_finish(writer), LR_OK);
}

static inline void write_scanner(const struct setup *s, const char *path)
{
    assert_int_equal(lr_scanner_write(path, s->ring->scanner, NULL), LR_OK);
}

/* Forms of YAML that write_scanner does not use. */
static inline void write_yaml(const struct setup *s, const char *path)
{
    text_write(path, "# a comment\nname: \"two rings\"\nring:\n  radius_mm: 59\n  modules: 18\n  rings: 2\n"
                     "  ring_pitch_mm: 27.85\nmodule: {crystals: [[6, 6], 13], block_gap_mm: [0.1, 0],\n"
                     "  pitch_mm: [1.55, 1.55], face_mm: [1.45, 1.45], depth_mm: 15, layers: [{depth_mm: 4},\n"
                     "  {depth_mm: 3, front_mm: 5, face_mm: [1, 1], offset_mm: [1, -0.5]}]}\n"
                     "coincidence: {max_ring_difference: 3}\nsource:\n  - 'it''s made up'\n");
}

/* One crystal per line; detectors of the second ring of modules are numbered after those of the first. */
static inline void write_map(const struct setup *s, const char *path)
{
    FILE *file = non_null(fopen(path, "w"));
    fputs("# depth_mm: 10\n# face_mm: 3.5 4.5\n", file);
    for (int c = 0; c < 36; c++) {
        double at[3];
        lr_scanner_crystal_centre(s->ring->scanner, c, at);
        fprintf(file, "%d %d %.4f %.4f %.4f\n", c % 6 / 3, c / 6 * 3 + c % 3, at[0], at[1], at[2]);
    }
    assert_int_equal(fclose(file), 0);
}

/* Record k is a prompt event of detectors k and k + 9 in rings 0 and 1. */
static inline void write_safir(const struct setup *s, const char *path)
{
    unsigned char bytes[32 + 8 * 9] = "SAFIR CListModeData";
    for (int k = 0; k < 9; k++) {
        const unsigned char record[8] = {0, 1, (unsigned char)k, 0, (unsigned char)(k + 9)};
        memcpy(bytes + 32 + 8 * k, record, 8);
    }
    bytes_write(path, bytes, sizeof(bytes));
    write_map(s, file_in(&s->folder, "good.txt"));
}

static inline void write_siemens(const struct setup *s, const char *path)
{
    uint32_t words[40]; /* a little-endian machine */
    for (unsigned k = 0; k < 40; k++) words[k] = (k % 4 == 0 ? 0x80000000u : 0x40000000u) | (k * 29 + 17);
    bytes_write(path, words, sizeof(words));
    text_write(file_in(&s->folder, "good.hdr"),
               "!INTERFILE:=\ndata format := CoincidenceList\nnumber of rings:=4\n%number of projections:=20\n"
               "%number of views := 16\n%maximum ring difference:=2\n%axial_compression:=1\n"
               "%LM event and tag words format (bits):=32\n");
}

static inline void write_events(const struct setup *s, const char *path)
{
    lr_lor_data *data = keep(lr_lor_data_create(s->ring, NULL));
    for (int n = 0; n < 20; n++) data->values[n] = 1.0f;
    lr_events_writer *writer = lr_events_writer_create(&(lr_events_writer_params){.path = path, .lors = s->ring});
    const lr_event_sink sink = lr_events_writer_sink(writer);
    const lr_list_params list = {.lors = s->ring, .data = data, .duration_s = 1, .seed = 3};
    assert_ok(lr_events_from_counts(&list, &sink), lr_events_writer_finish(writer));
}

static inline void write_values(const struct setup *s, const char *path)
{
    const int64_t shape = 36;
    float values[36];
    char text[512] = "";
    for (int n = 0; n < 36; n++) {
        values[n] = (float)n;
        snprintf(text + strlen(text), 16, "%d.5%s", n, n % 9 == 8 ? "\n" : " ");
    }
    if (strstr(path, ".npy") != NULL)
        assert_int_equal(lr_npy_write(path, &(lr_array){values, &shape, 1}, NULL), LR_OK);
    else
        text_write(path, text);
}

static inline void write_scanner_block(const struct setup *s, const char *path)
{
    text_write(path, "!INTERFILE :=\noriginating system := none\nScanner parameters :=\nScanner type := unknown\n"
                     "Number of rings := 4\nNumber of detectors per ring := 64\nInner ring diameter (cm) := 16.3\n"
                     "Average depth of interaction (cm) := 0.5\nDistance between rings (cm) := 0.5\n"
                     "Default bin size (cm) := 0.2\nMaximum number of non-arc-corrected bins := 41\n"
                     "Number of blocks per bucket in transaxial direction := 1\n"
                     "Number of blocks per bucket in axial direction := 1\n"
                     "Number of crystals per block in axial direction := 4\n"
                     "Number of crystals per block in transaxial direction := 4\n"
                     "Number of detector layers := 1\nend scanner parameters :=\n!END OF INTERFILE :=\n");
}

/* --- readers --- */

static inline lr_status read_image(const struct setup *s, const char *path, struct test_log *log)
{
    lr_image *image = lr_image_read_on(path, &image_grid, &log->log);
    const bool good = image != NULL;
    lr_image_destroy(image);
    return good ? LR_OK : log->status;
}

static inline lr_status read_counts(const struct setup *s, const char *path, struct test_log *log)
{
    lr_lor_data *data = lr_lor_data_read(path, strstr(path, ".hs") != NULL ? s->even : s->ring, &log->log);
    const bool good = data != NULL;
    lr_lor_data_destroy(data);
    return good ? LR_OK : log->status;
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
    lr_status status = lr_matrix_file_check_scanner(file, s->ring);
    if (status == LR_OK) status = lr_matrix_file_rows(file, &sink, NULL);
    lr_matrix_file_close(file);
    return status;
}

static inline lr_status read_scanner(const struct setup *s, const char *path, struct test_log *log)
{
    lr_scanner *scanner = (strstr(path, ".h5") != NULL ? lr_scanner_read_hdf5 : lr_scanner_read)(path, &log->log);
    const bool good = scanner != NULL;
    lr_scanner_destroy(scanner);
    return good ? LR_OK : log->status;
}

/* A list that write_safir, write_siemens or write_events has written, with the files that belong to it. */
static inline lr_events_source source_of(const struct setup *s, const char *path, const lr_log *log)
{
    lr_events_source source = {.path = path, .format = LR_EVENTS_PETSIRD, .scanner = s->ring->scanner, .log = log};
    if (strstr(path, ".Cdh") != NULL) source.format = LR_EVENTS_CASTOR;
    if (strstr(path, ".safir") != NULL) source.format = LR_EVENTS_SAFIR;
    if (source.format == LR_EVENTS_SAFIR) source.companion = file_in(&s->folder, "good.txt");
    if (strstr(path, ".l") == NULL) return source;
    source.format = LR_EVENTS_SIEMENS;
    source.scanner = s->octagon->scanner;
    source.companion = file_in(&s->folder, "good.hdr");
    return source;
}

static inline lr_status read_events(const struct setup *s, const char *path, struct test_log *log)
{
    return pass_events(source_of(s, path, NULL), log);
}

static inline lr_status read_values(const struct setup *s, const char *path, struct test_log *log)
{
    float values[36];
    return lr_crystal_values_read(path, s->ring->scanner, values, &log->log);
}

/* --- formats --- */

struct format {
    const char *name;   /* name in the folder of the file to read */
    const char *spoilt; /* file of this format to damage; NULL = the one above */
    void (*write)(const struct setup *s, const char *path);
    lr_status (*read)(const struct setup *s, const char *path, struct test_log *log);
};

static const struct format formats[] = {{"good.nii", NULL, write_image, read_image},
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
                                        {"good.h5", NULL, write_counts, read_scanner},
                                        {"good.hs", NULL, write_projection_data, read_counts},
                                        {"good.hs", "good.s", write_projection_data, read_counts},
                                        {"matrix.h5", NULL, write_matrix, read_matrix},
                                        {"packed.h5", NULL, write_matrix, read_matrix},
                                        {"good.npz", NULL, write_matrix, read_matrix},
                                        {"good.yaml", NULL, write_scanner, read_scanner},
                                        {"own.yaml", NULL, write_yaml, read_scanner},
                                        {"good.geom", NULL, write_scanner, read_scanner},
                                        {"good.hscan", NULL, write_scanner, read_scanner},
                                        {"good.hscan", "good.lut", write_scanner, read_scanner},
                                        {"good.petsird", NULL, write_scanner, read_scanner},
                                        {"block.hs", NULL, write_scanner_block, read_scanner},
                                        {"crystal_map.txt", NULL, write_map, read_scanner},
                                        {"good.safir", NULL, write_safir, read_events},
                                        {"good.safir", "good.txt", write_safir, read_events},
                                        {"good.l", NULL, write_siemens, read_events},
                                        {"good.l", "good.hdr", write_siemens, read_events},
                                        {"events.petsird", NULL, write_events, read_events},
                                        {"good.Cdh", NULL, write_events, read_events},
                                        {"good.Cdh", "good.Cdf", write_events, read_events},
                                        {"values.npy", NULL, write_values, read_values},
                                        {"values.txt", NULL, write_values, read_values}};
enum { NUM_FORMATS = sizeof(formats) / sizeof(formats[0]) };

static inline int set_up(void **state)
{
    static struct setup s;
    folder_init(&s.folder);
    s.seed = test_seed();
    s.ring = lors_of(small_ring(60.0, 0.0));
    s.even = lors_of(even_ring(8, 0.0));
    s.octagon = lors_of(octagon());
    *state = &s;
    return 0;
}

static inline int tear_down(void **state)
{
    folder_finish(&((struct setup *)*state)->folder);
    return destroy_kept(state);
}
