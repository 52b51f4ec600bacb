/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images in the formats of STIR, CASToR, ITK and NumPy: what is written comes back; known voxels lie
 * where each format's own rules put them; files that cannot be right are refused with a sentence. */
#include "io/files.h"

enum { nx = 5, ny = 4, nz = 3, num_voxels = nx * ny * nz };

static const char *const names[] = {"a.hv", "a.hdr", "a.mhd", "a.mha"};
enum { num_names = 4 };

/* No two voxels are alike, no axis is symmetric, and sizes are even and odd. */
static lr_image *make_image(void)
{
    const lr_grid grid = {{nx, ny, nz}, {0.45, 1.1, 2.2}, {-20.3, 1.7, -33.033}};
    lr_image *image = lr_image_create(&grid, NULL);
    assert_non_null(image);
    for (int n = 0; n < num_voxels; n++) image->values[n] = (float)n * 0.3f - 4.0f;
    return image;
}

static void write_text(const char *path, const char *text)
{
    bytes_write(path, text, strlen(text));
}

/* Grids agree to rounding: headers are decimal, with 15 digits. */
static void assert_same(const lr_image *a, const lr_image *b)
{
    assert_non_null(b);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(a->grid.size[k], b->grid.size[k]);
        assert_close(a->grid.voxel_mm[k], b->grid.voxel_mm[k], 1e-13);
        assert_close(a->grid.origin_mm[k], b->grid.origin_mm[k], 1e-13);
    }
    assert_memory_equal(a->values, b->values, num_voxels * sizeof(float));
}

static void test_round_trip(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    lr_image *image = make_image();
    for (int n = 0; n < num_names; n++) {
        struct test_log log;
        test_log_init(&log);
        folder_file(&folder, path, names[n]);
        assert_int_equal(lr_image_write(path, image, &log.log), LR_OK);
        lr_image *back = lr_image_read(path, &log.log);
        if (back == NULL) fail_msg("%s: %s", path, log.error);
        assert_same(image, back);
        lr_image_destroy(back);
        lr_grid grid;
        assert_int_equal(lr_grid_read(path, &grid, &log.log), LR_OK);
        assert_memory_equal(grid.size, image->grid.size, sizeof(grid.size));
        assert_close(grid.origin_mm[2], image->grid.origin_mm[2], 1e-13);
        assert_int_equal(log.num_warnings, 0);
    }
    assert_int_equal(folder_visit(&folder, false), 7); /* .mha is one file, the others two */
    lr_image_destroy(image);
    folder_finish(&folder);
}

static void test_npy(void **state)
{
    (void)state;
    struct test_folder folder;
    struct test_log log;
    char path[128];
    folder_init(&folder);
    test_log_init(&log);
    lr_image *image = make_image();
    folder_file(&folder, path, "a.npy");
    assert_int_equal(lr_image_write(path, image, &log.log), LR_OK);
    lr_image *back = lr_image_read_on(path, &image->grid, &log.log);
    assert_same(image, back);
    lr_image_destroy(back);
    lr_grid grid = image->grid;
    assert_null(lr_image_read(path, &log.log));
    assert_non_null(strstr(log.error, "does not say where its voxels are"));
    assert_int_equal(lr_grid_read(path, &grid, &log.log), LR_BAD_INPUT);
    assert_null(lr_image_read_on(path, NULL, &log.log));
    grid.size[0] = ny; /* the same number of voxels */
    grid.size[1] = nx;
    assert_null(lr_image_read_on(path, &grid, &log.log));
    assert_non_null(strstr(log.error, "[nz][ny][nx] = [3][5][4]"));
    assert_int_equal(log.status, LR_BAD_INPUT);
    size_t count;
    unsigned char *bytes = bytes_read(path, &count);
    memcpy(strchr((char *)bytes + 10, '<'), ">i2", 3);
    for (int n = 0; n < 2 * num_voxels; n++) /* 0x0001, 0x0203, ... */
        bytes[count - 4 * num_voxels + (size_t)n] = (unsigned char)(n % 128);
    bytes_write(path, bytes, count - 2 * num_voxels);
    back = lr_image_read_on(path, &image->grid, &log.log);
    assert_non_null(back);
    assert_true(back->values[1] == 515.0f && back->values[num_voxels - 1] == 118 * 256 + 119);
    lr_image_destroy(back);
    free(bytes);
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* Our voxel (ix, iy, iz) whose centre is there; fails where there is none. */
static float value_at(const lr_image *image, double x, double y, double z)
{
    const double at[3] = {x, y, z};
    int index[3];
    for (int k = 0; k < 3; k++) {
        const double place = (at[k] - image->grid.origin_mm[k]) / image->grid.voxel_mm[k];
        index[k] = (int)lround(place);
        if (fabs(place - index[k]) > 1e-9 || index[k] < 0 || index[k] >= image->grid.size[k])
            fail_msg("no voxel at %g, %g, %g: axis %d gives %.12g", x, y, z, k, place);
    }
    return image->values[index[0] + nx * (index[1] + ny * index[2])];
}

/* A file whose n-th voxel has the value n, read; the header names "voxels". */
static lr_image *read_numbered(const struct test_folder *folder, const char *name, const char *header)
{
    char path[128];
    float values[num_voxels];
    struct test_log log;
    test_log_init(&log);
    for (int n = 0; n < num_voxels; n++) values[n] = (float)n;
    bytes_write(folder_file(folder, path, "voxels"), values, sizeof(values));
    char whole[2048];
    snprintf(whole, sizeof(whole), "%s%s", header,
             strncmp(header, "!INTERFILE", 10) == 0 && strstr(header, "!END") == NULL ? "!END OF INTERFILE :=\n" : "");
    write_text(folder_file(folder, path, name), whole);
    lr_image *image = lr_image_read(path, &log.log);
    if (image == NULL) fail_msg("%s: %s", path, log.error);
    return image;
}

#define SIZES                                                                                                          \
    "!matrix size [1] := 5\n!matrix size[2]:=4\n!Matrix_Size [3] := 3\n"                                               \
    "scaling factor (mm/pixel) [1] := 2\nscaling factor (mm/pixel) [2] := 3\n"                                         \
    "scaling factor (mm/pixel) [3] := 4\n"
#define FLOATS                                                                                                         \
    "imagedata byte order := LITTLEENDIAN\n!number format := float\n"                                                  \
    "!number of bytes per pixel := 4\n"

/* STIR: the axis passes through voxel n/2 for even n too; x, y, z run against ours; the middle
 * plane is the scanner's. */
static void test_stir_places(void **state)
{
    (void)state;
    struct test_folder folder;
    folder_init(&folder);
    lr_image *image =
        read_numbered(&folder, "a.hv",
                      "!INTERFILE :=\r\n; comment := 1\n"
                      "name of data file := voxels\n" FLOATS SIZES "!END OF INTERFILE :=\nmatrix size [1] := 7\n");
    assert_true(value_at(image, 0, 0, 0) == 2 + 5 * (2 + 4 * 1)); /* voxel (5/2, 4/2, middle) */
    assert_true(value_at(image, 4, 6, 4) == 0);                   /* the file's first */
    assert_true(value_at(image, 2, 6, 4) == 1);
    assert_true(value_at(image, 4, 3, 4) == 5);
    assert_true(value_at(image, 4, 6, 0) == 20);
    lr_image_destroy(image);
    image =
        read_numbered(&folder, "a.hv",
                      "!INTERFILE :=\nname of data file := voxels\n" FLOATS SIZES "first pixel offset (mm) [1] := -10\n"
                      "first pixel offset (mm) [2] := -20\n"
                      "first pixel offset (mm) [3] := 7\n"
                      "image scaling factor [1] := 2\n");
    /* x_STIR = -10 + 2 i, y_STIR = -20 + 3 j, z_STIR = 7 + 4 (k - 1) */
    assert_true(value_at(image, 10, 20, -3) == 0);
    assert_true(value_at(image, 2, 11, -11) == 2 * (num_voxels - 1));
    lr_image_destroy(image);
    /* Its first plane is our last. */
    image = read_numbered(&folder, "a.hv",
                          "\xef\xbb\xbf!INTERFILE :=\nname of data  file := voxels\n" FLOATS SIZES
                          "image scaling factor [1] := {2, 3, 5}\n!END OF INTERFILE :=\n");
    assert_true(value_at(image, 2, 6, 4) == 2 * 1);
    assert_true(value_at(image, 4, 6, 0) == 3 * 20);
    assert_true(value_at(image, 4, 6, -4) == 5 * 40);
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* Siemens' keys, without an end, under an ending that is CASToR's else; GATE's Interfile 3.3. */
static void test_other_writers(void **state)
{
    (void)state;
    struct test_folder folder;
    folder_init(&folder);
    lr_image *image = read_numbered(&folder, "a.hdr",
                                    "!INTERFILE:=\r\n%SMS-MI header name space:=image subheader\r\n"
                                    "!name of data file:=voxels\r\n%patient orientation:=HFS\r\n" FLOATS
                                    "matrix size[1]:=5\r\nmatrix size[2]:=4\r\nmatrix size[3]:=3\r\n"
                                    "scale factor (mm/pixel) [1]:=2\r\nscale factor (mm/pixel) [2]:=3\r\n"
                                    "scale factor (mm/pixel) [3]:=4\r\n!END OF INTERFILE:=\r\n");
    assert_true(value_at(image, 4, 6, 4) == 0 && value_at(image, 2, 6, 4) == 1 && value_at(image, 4, 6, 0) == 20);
    lr_image_destroy(image);
    image = read_numbered(&folder, "a.hv",
                          "!INTERFILE :=\nname of data file := voxels\n!version of keys := 3.3\n" FLOATS
                          "!total number of images := 3\n!matrix size [1] := 5\n!matrix size [2] := 4\n"
                          "scaling factor (mm/pixel) [1] := +2\nscaling factor (mm/pixel) [2] := +3\n"
                          "!number of slices := 3\nslice thickness (pixels) := +4\n!END OF INTERFILE :=\n");
    assert_true(value_at(image, 4, 6, 4) == 0 && value_at(image, 4, 6, 0) == 20);
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* A header without its last lines is refused, however many. */
static void test_cut_headers(void **state)
{
    (void)state;
    struct test_folder folder;
    struct test_log log;
    char path[128], text[4096];
    folder_init(&folder);
    const lr_grid grid = {.size = {5, 4, 3}, .voxel_mm = {2, 3, 4}, .origin_mm = {-4, -4.5, 20}};
    lr_image *image = lr_image_create(&grid, NULL);
    static const char *const written[] = {"a.hv", "a.hdr", "a.mhd"};
    for (int k = 0; k < 3; k++) {
        test_log_init(&log);
        assert_int_equal(lr_image_write(folder_file(&folder, path, written[k]), image, NULL), LR_OK);
        FILE *file = fopen(path, "r");
        const size_t length = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
        text[length] = '\0';
        for (char *end = strrchr(text, '\n'); end != NULL; end = strrchr(text, '\n')) {
            end[0] = '\0';
            char *line = strrchr(text, '\n');
            if (line != NULL) {
                line[1] = '\0';
                bytes_write(path, text, strlen(text));
                lr_image *cut = lr_image_read(path, &log.log);
                assert_null(cut);
            }
        }
    }
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* A map of 0 and 1 whose header names no byte order, which means big endian, and one that ends in the NaN of that
 * order. */
static void test_wrong_byte_order(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    float values[num_voxels];
    folder_init(&folder);
    for (int run = 0; run < 2; run++) {
        for (int n = 0; n < num_voxels; n++) values[n] = n % 3 == 0 ? 1.0f : 0.0f;
        if (run == 1) memcpy(&values[num_voxels - 1], "\x7f\xc0\x00\x3f", 4);
        bytes_write(folder_file(&folder, path, "voxels"), values, sizeof(values));
        write_text(folder_file(&folder, path, "a.hv"),
                   "!INTERFILE :=\nname of data file := voxels\n!number format := float\n"
                   "!number of bytes per pixel := 4\n" SIZES "!END OF INTERFILE :=\n");
        struct test_log log;
        test_log_init(&log);
        assert_null(lr_image_read(path, &log.log));
        assert_int_equal(log.status, LR_BAD_INPUT);
        assert_non_null(strstr(log.error, "in the other byte order only"));
    }
    folder_finish(&folder);
}

/* CASToR: the same key is the place of the middle; only x runs against ours. */
static void test_castor_places(void **state)
{
    (void)state;
    struct test_folder folder;
    folder_init(&folder);
    lr_image *image = read_numbered(&folder, "a.hdr",
                                    "!INTERFILE :=\n!version of keys := CASToRv3.1\n"
                                    "!name of data file := voxels\n" FLOATS SIZES);
    assert_true(value_at(image, 4, -4.5, -4) == 0);
    assert_true(value_at(image, 2, -4.5, -4) == 1);
    assert_true(value_at(image, 4, -1.5, -4) == 5);
    assert_true(value_at(image, 4, -4.5, 0) == 20);
    lr_image_destroy(image);
    image = read_numbered(&folder, "a.hdr", /* its shortest headers have no first line */
                          "!name of data file := voxels\n"
                          "imagedata byte order := LITTLEENDIAN\n"
                          "!number format := short float\n!number of bytes per pixel := 4\n" SIZES
                          "first pixel offset (mm) [1] := -10\n"
                          "first pixel offset (mm) [2] := -20\n"
                          "first pixel offset (mm) [3] := 7\n"
                          "rescale slope := 3\nrescale intercept := -1\n"
                          "quantification units := kbq/cc\n");
    assert_true(value_at(image, 14, -24.5, 3) == -1);
    assert_true(value_at(image, 6, -15.5, 11) == 3 * (num_voxels - 1) - 1);
    lr_image_destroy(image);
    image = read_numbered(&folder, "a.hdr", /* STIR's keys under the other ending */
                          "!INTERFILE :=\n!version of keys := STIR4.0\n"
                          "name of data file := voxels\n" FLOATS SIZES);
    assert_true(value_at(image, 4, 6, 4) == 0);
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* All 48 orders and directions of a MetaImage's axes give the same image; ITK is LPS. */
static void test_metaimage_orientations(void **state)
{
    (void)state;
    struct test_folder folder;
    folder_init(&folder);
    const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const int size[3] = {nx, ny, nz};
    const double voxel[3] = {2, 3, 4}, first[3] = {10, -20, 30}; /* LPS */
    for (int n = 0; n < 48; n++) {
        const int *axis = orders[n / 8];
        int sizes[3], directions[9] = {0};
        double spacing[3], offset[3];
        for (int f = 0; f < 3; f++) {
            const int k = axis[f], back = n >> f & 1;
            sizes[f] = size[k];
            spacing[f] = voxel[k];
            directions[3 * f + k] = back ? -1 : 1;
            offset[k] = first[k] + (back ? (size[k] - 1) * voxel[k] : 0);
        }
        char header[1024];
        snprintf(header, sizeof(header),
                 "ObjectType = Image\nNDims = 3\nDimSize = %d %d %d\n"
                 "ElementSpacing = %g %g %g\nOffset = %g %g %g\n"
                 "TransformMatrix = %d %d %d %d %d %d %d %d %d\n"
                 "ElementType = MET_FLOAT\nElementDataFile = voxels\n",
                 sizes[0], sizes[1], sizes[2], spacing[0], spacing[1], spacing[2], offset[0], offset[1], offset[2],
                 directions[0], directions[1], directions[2], directions[3], directions[4], directions[5],
                 directions[6], directions[7], directions[8]);
        lr_image *image = read_numbered(&folder, "a.mhd", header);
        for (int v = 0; v < num_voxels; v++) {
            const int at[3] = {v % sizes[0], v / sizes[0] % sizes[1], v / sizes[0] / sizes[1]};
            double lps[3];
            for (int k = 0; k < 3; k++) {
                lps[k] = offset[k];
                for (int f = 0; f < 3; f++) lps[k] += at[f] * spacing[f] * directions[3 * f + k];
            }
            assert_true(value_at(image, -lps[0], -lps[1], lps[2]) == (float)v);
        }
        lr_image_destroy(image);
    }
    folder_finish(&folder);
}

/* --- numbers --- */

struct kind {
    const char *interfile, *meta;
    int bytes;
};

static const struct kind kinds[] = {{"float", "MET_FLOAT", 4},
                                    {"long float", "MET_DOUBLE", 8},
                                    {"signed integer", "MET_CHAR", 1},
                                    {"unsigned integer", "MET_UCHAR", 1},
                                    {"signed integer", "MET_SHORT", 2},
                                    {"unsigned integer", "MET_USHORT", 2},
                                    {"signed integer", "MET_INT", 4},
                                    {"unsigned integer", "MET_UINT", 4},
                                    {"signed integer", "MET_LONG_LONG", 8}};

/* Numbers 100 - n: negative ones wrap round in unsigned types only from n = 101 on. */
static void write_numbers(const char *path, const struct kind *kind, bool big_endian)
{
    unsigned char raw[8 * num_voxels];
    for (int n = 0; n < num_voxels; n++) {
        const bool is_unsigned = strstr(kind->interfile, "unsigned") != NULL;
        const int64_t whole = (is_unsigned ? 100 : 20) - n;
        const float single = (float)whole;
        const double twice = (double)whole;
        const bool is_float = strstr(kind->interfile, "float") != NULL;
        unsigned char bytes[8]; /* little endian, as the machines tests run on */
        memcpy(bytes,
               is_float ? (kind->bytes == 4 ? (const void *)&single : (const void *)&twice) : (const void *)&whole,
               (size_t)kind->bytes);
        for (int b = 0; b < kind->bytes; b++) raw[n * kind->bytes + b] = bytes[big_endian ? kind->bytes - 1 - b : b];
    }
    bytes_write(path, raw, (size_t)(num_voxels * kind->bytes));
}

static void assert_numbers(const char *path, const struct kind *kind)
{
    struct test_log log;
    test_log_init(&log);
    lr_image *image = lr_image_read(path, &log.log);
    if (image == NULL) fail_msg("%s of %d bytes: %s", kind->interfile, kind->bytes, log.error);
    const float first = strstr(kind->interfile, "unsigned") != NULL ? 100 : 20;
    float sum = 0;
    for (int n = 0; n < num_voxels; n++) sum += image->values[n];
    assert_true(sum == num_voxels * (first - 0.5f * (num_voxels - 1)));
    lr_image_destroy(image);
}

static void test_number_types(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128], data[128], header[1024];
    folder_init(&folder);
    folder_file(&folder, data, "voxels");
    for (size_t n = 0; n < 2 * sizeof(kinds) / sizeof(kinds[0]); n++) {
        const struct kind *kind = &kinds[n / 2];
        const bool big = n % 2 == 1;
        write_numbers(data, kind, big);
        snprintf(header, sizeof(header),
                 "!INTERFILE :=\nname of data file := voxels\n%s%s!number format := %s\n"
                 "!number of bytes per pixel := %d\n" SIZES "!END OF INTERFILE :=\n",
                 big ? "" : "imagedata byte order := littleendian\n",
                 big && n % 4 == 1 ? "imagedata byte order := BIGENDIAN\n" : "", kind->interfile, kind->bytes);
        write_text(folder_file(&folder, path, "a.hdr"), header);
        assert_numbers(path, kind);
        snprintf(header, sizeof(header),
                 "NDims = 3\nDimSize = 5 4 3\nElementByteOrderMSB = %s\nElementType = %s\n"
                 "HeaderSize = -1\nElementDataFile = voxels\n",
                 big ? "True" : "False", kind->meta);
        write_text(folder_file(&folder, path, "a.mhd"), header);
        assert_numbers(path, kind);
    }
    folder_finish(&folder);
}

/* --- refusals --- */

static void assert_refused(const char *path, const char *words)
{
    struct test_log log;
    test_log_init(&log);
    lr_image *image = lr_image_read(path, &log.log);
    if (image != NULL || strstr(log.error, words) == NULL || log.status != LR_BAD_INPUT)
        fail_msg("expected \"%s\" about %s, got \"%s\" (%d)", words, path, log.error, log.status);
}

#define HEAD "!INTERFILE :=\nname of data file := voxels\n"

static void test_interfile_refusals(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "the header is empty"},
        {"INTERFIL :=\n", "does not begin with '!INTERFILE'"},
        {HEAD FLOATS, "matrix size [1]"},
        {"!INTERFILE :=\n" FLOATS SIZES "!END OF INTERFILE :=\n", "does not name its data file"},
        {"!INTERFILE :=\nname of data file := none\n" FLOATS SIZES "!END OF INTERFILE :=\n", "No such file"},
        {"!INTERFILE :=\nname of data file := .\n" FLOATS SIZES "!END OF INTERFILE :=\n", "no plain file"},
        {HEAD FLOATS SIZES "matrix size [2] := 9999999999\n", "matrix size [2]"},
        {HEAD FLOATS SIZES "matrix size [2] := -4\n", "matrix size [2]"},
        {HEAD FLOATS SIZES "matrix size [2] := four\n", "must be a whole number, found 'four'"},
        {HEAD FLOATS SIZES "matrix size [2] := 2147483647\n", "voxels"},
        {HEAD FLOATS SIZES "matrix size [2] := 40000000\n!END OF INTERFILE :=\n", "is truncated"},
        {HEAD FLOATS SIZES "matrix size [4] := 2\n", "2 volumes"},
        {HEAD FLOATS SIZES "number of time frames := 3\n", "'number of time frames' is 3"},
        {HEAD FLOATS SIZES "scaling factor (mm/pixel) [3] := 0\n", "greater than 0"},
        {HEAD FLOATS SIZES "scaling factor (mm/pixel) [3] := nan\n", "must be a number"},
        {HEAD FLOATS SIZES "first pixel offset (mm) [1] := inf\n", "must be a number"},
        {HEAD FLOATS SIZES "number format := ascii\n", "format 'ascii'"},
        {HEAD FLOATS SIZES "number of bytes per pixel := 3\n", "with 3 bytes"},
        {HEAD FLOATS SIZES "imagedata byte order := middle\n", "neither LITTLEENDIAN nor"},
        {HEAD FLOATS SIZES "data offset in bytes := -1\n", "begins at byte -1"},
        {HEAD FLOATS SIZES "data offset in bytes := 1\n!END OF INTERFILE :=\n", "is truncated"},
        {HEAD FLOATS SIZES "data offset in bytes := 9223372036854775807\n!END OF INTERFILE :=\n", "is truncated"},
        {HEAD FLOATS SIZES "image scaling factor := {1, 2}\n!END OF INTERFILE :=\n", "each of the 3 planes"},
        {HEAD FLOATS SIZES "image scaling factor := {1, 2, x}\n!END OF INTERFILE :=\n", "each of the 3 planes"},
        {HEAD FLOATS SIZES "matrix axis label [1] := tangential coordinate\n", "holds no image with the axes x, y, z"},
    };
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    lr_image_destroy(read_numbered(&folder, "a.hv", HEAD FLOATS SIZES));
    folder_file(&folder, path, "a.hv");
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        write_text(path, cases[k][0]);
        assert_refused(path, cases[k][1]);
    }
    bytes_write(path, "!INTERFILE :=\n\0\0\0", 17);
    assert_refused(path, "is not text");
    assert_refused(folder.path, "is a folder");
    mkdir(folder_file(&folder, path, "b.hv"), 0777);
    assert_refused(path, "is a folder: give a file");
    rmdir(path);
    assert_refused("no/such.hv", "No such file");
    const float nan_value = NAN;
    bytes_write(folder_file(&folder, path, "voxels"), &nan_value, 4);
    write_text(folder_file(&folder, path, "a.hv"), HEAD FLOATS SIZES "matrix size [1] := 1\nmatrix size [2] := 1\n"
                                                                     "matrix size [3] := 1\n!END OF INTERFILE :=\n");
    assert_refused(path, "holds nan in its voxel (0, 0, 0)");
    write_text(folder_file(&folder, path, "a.v"), "\1\2\3");
    assert_refused(path, "name the header, which ends in .hv");
    bytes_write(folder_file(&folder, path, "a.hdr"), "\x5c\x01\0\0", 4);
    assert_refused(path, "NIfTI-1");
    folder_finish(&folder);
}

#define META "ObjectType = Image\nNDims = 3\nDimSize = 5 4 3\n"
#define TAIL "ElementType = MET_FLOAT\nElementDataFile = voxels\n"

static void test_metaimage_refusals(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "ElementDataFile is missing"},
        {"hello\n", "is not \"Key = value\""},
        {META "ElementType = MET_FLOAT\n", "ElementDataFile is missing"},
        {META "ElementType = MET_FLOAT\nElementDataFile = voxels", "is not \"Key = value\""},
        {META "NDims = 2\n" TAIL, "2 dimensions"},
        {META "DimSize = 5 4\n" TAIL, "'DimSize = 5 4' makes no sense"},
        {META "DimSize = 5 4 0\n" TAIL, "size 0 along its axis 3"},
        {META "DimSize = 5 4 1e9\n" TAIL, "voxels"},
        {META "DimSize = 5 4 1e7\n" TAIL, "is truncated"},
        {META "ElementSpacing = 1 nan 1\n" TAIL, "makes no sense"},
        {META "ElementSpacing = 1 0 1\n" TAIL, "voxel size of 0 mm along its axis 2"},
        {META "TransformMatrix = 1 0.001 0 -0.001 1 0 0 0 1\n" TAIL, "oblique or sheared"},
        {META "TransformMatrix = 1 0 0 1 0 0 0 0 1\n" TAIL, "same direction"},
        {META "CompressedData = True\n" TAIL, "is compressed"},
        {META "BinaryData = False\n" TAIL, "is written as text"},
        {META "ElementNumberOfChannels = 3\n" TAIL, "several channels"},
        {META "ElementToIntensityFunctionSlope = 2\n" TAIL, "units of its own"},
        {META "ElementType = MET_LONG\nElementDataFile = voxels\n", "type 'MET_LONG'"},
        {META "ElementType = MET_FLOAT\nElementDataFile = LIST\na\n", "several files"},
        {META "ElementType = MET_FLOAT\nElementDataFile = none\n", "No such file"},
        {META "ElementType = MET_FLOAT\nElementDataFile = LOCAL\n", "is truncated"},
        {META "HeaderSize = 1\n" TAIL, "is truncated"},
        {META "HeaderSize = -2\n" TAIL, "makes no sense"},
    };
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    lr_image_destroy(read_numbered(&folder, "a.mhd", META TAIL));
    folder_file(&folder, path, "a.mhd");
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        write_text(path, cases[k][0]);
        assert_refused(path, cases[k][1]);
    }
    folder_finish(&folder);
}

/* Header and data cut at any byte, and both replaced by noise: an image or a sentence, and for what
 * is cut from the data always a sentence. */
static void test_damage(void **state)
{
    (void)state;
    static const char *const data[] = {"a.v", "a.img", "a.raw", "a.mha"};
    struct test_folder folder;
    char path[128], file[128];
    uint64_t seed = test_seed();
    folder_init(&folder);
    lr_image *image = make_image();
    for (int n = 0; n < 2 * num_names; n++) {
        size_t count;
        const bool is_data = n >= num_names;
        folder_file(&folder, path, names[n % num_names]);
        folder_file(&folder, file, is_data ? data[n % num_names] : names[n % num_names]);
        assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
        unsigned char *bytes = bytes_read(file, &count);
        for (size_t length = 0; length <= count; length++) {
            struct test_log log;
            test_log_init(&log);
            bytes_write(file, bytes, length);
            lr_image *back = lr_image_read(path, &log.log);
            const bool refused = back == NULL && log.status == LR_BAD_INPUT;
            if ((back == NULL && !refused) || (is_data && refused != (length < count)))
                fail_msg("%s cut to %zu of %zu bytes: \"%s\"", file, length, count, log.error);
            lr_image_destroy(back);
        }
        for (int round = 0; round < 200; round++) {
            struct test_log log;
            test_log_init(&log);
            const size_t at = (size_t)(test_random(&seed) * (double)count);
            const unsigned char kept = bytes[at];
            bytes[at] = (unsigned char)(test_random(&seed) * 256);
            bytes_write(file, bytes, count);
            bytes[at] = kept;
            lr_image *back = lr_image_read(path, &log.log);
            assert_true(back != NULL || log.status == LR_BAD_INPUT);
            lr_image_destroy(back);
        }
        free(bytes);
    }
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* Neither the header nor the voxels appear, and older files stay as they were. */
static void test_disk_full(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    size_t count;
    folder_init(&folder);
    lr_image *image = make_image();
    for (int n = 0; n < num_names; n++) {
        struct test_log log;
        test_log_init(&log);
        folder_file(&folder, path, names[n]);
        const struct rlimit before = disk_fill(100);
        assert_int_equal(lr_image_write(path, image, &log.log), LR_FAILED);
        disk_empty(before);
        assert_int_equal(log.status, LR_FAILED);
        assert_int_equal(folder_visit(&folder, false), 0);
    }
    write_text(folder_file(&folder, path, "a.v"), "older");
    const struct rlimit before = disk_fill(300); /* the voxels fit, the header does not */
    assert_int_equal(lr_image_write(folder_file(&folder, path, "a.hv"), image, NULL), LR_FAILED);
    disk_empty(before);
    unsigned char *bytes = bytes_read(folder_file(&folder, path, "a.v"), &count);
    assert_int_equal(count, 5);
    assert_memory_equal(bytes, "older", 5);
    free(bytes);
    assert_int_equal(folder_visit(&folder, false), 1);
    struct test_log log;
    test_log_init(&log);
    assert_int_equal(lr_image_write("image.raw", image, &log.log), LR_USAGE);
    assert_int_equal(lr_image_write(NULL, image, &log.log), LR_USAGE);
    image->values[4 + nx * (3 + ny * 2)] = NAN;
    assert_int_equal(lr_image_write("a.mha", image, &log.log), LR_BAD_INPUT);
    assert_non_null(strstr(log.error, "voxel (4, 3, 2)"));
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* A file without an ending that says anything is taken for what it begins as. */
static void test_recognition(void **state)
{
    (void)state;
    static const char *const sources[] = {"a.hv", "a.mha", "a.nii.gz"};
    struct test_folder folder;
    char path[128];
    size_t count;
    folder_init(&folder);
    lr_image *image = make_image();
    for (int n = 0; n < 3; n++) {
        assert_int_equal(lr_image_write(folder_file(&folder, path, sources[n]), image, NULL), LR_OK);
        unsigned char *bytes = bytes_read(path, &count);
        bytes_write(folder_file(&folder, path, "image"), bytes, count);
        lr_image *back = lr_image_read(path, NULL);
        assert_same(image, back);
        lr_image_destroy(back);
        free(bytes);
    }
    lr_image_destroy(image);
    folder_finish(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),         cmocka_unit_test(test_npy),
        cmocka_unit_test(test_stir_places),        cmocka_unit_test(test_castor_places),
        cmocka_unit_test(test_wrong_byte_order),   cmocka_unit_test(test_other_writers),
        cmocka_unit_test(test_cut_headers),        cmocka_unit_test(test_metaimage_orientations),
        cmocka_unit_test(test_number_types),       cmocka_unit_test(test_interfile_refusals),
        cmocka_unit_test(test_metaimage_refusals), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_disk_full),          cmocka_unit_test(test_recognition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
