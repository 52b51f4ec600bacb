/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Images in the formats of STIR, CASToR, ITK and NumPy, and what NIfTI has in common with them. Images written are
 * read back, known voxels lie where the rules of each format put them, and invalid files are refused. */
#include "io/images.h"
#include "io/text_cases.h"

/* Files to write, and the file of voxels beside each header. Text headers have decimal numbers with 15 digits. */
static const struct {
    const char *name, *voxels;
    double tolerance;
} formats[] = {{"a.hv", "a.v", 1e-13},    {"a.hdr", "a.img", 1e-13}, {"a.mhd", "a.raw", 1e-13},
               {"a.mha", "a.mha", 1e-13}, {"a.nii", "a.nii", 0},     {"a.nii.gz", "a.nii.gz", 0}};
enum { num_formats = 6, num_texts = 4, num_files = 9 };

static void test_round_trip(void **state)
{
    lr_image *image = make_image();
    for (int n = 0; n < num_formats; n++) {
        assert_int_equal(lr_image_write(formats[n].name, image, &files.log.log), LR_OK);
        assert_same(image, read_good(formats[n].name), formats[n].tolerance);
        lr_grid grid;
        assert_int_equal(lr_grid_read(formats[n].name, &grid, &files.log.log), LR_OK);
        assert_same_grid(&grid, &image->grid, formats[n].tolerance);
    }
    assert_ints(files.log.num_warnings, 0, count_files(), num_files);
}

static void test_npy(void **state)
{
    const lr_log *log = &files.log.log;
    size_t count;
    lr_image *image = make_image();
    const char *path = "a.npy";
    assert_int_equal(lr_image_write(path, image, log), LR_OK);
    lr_image *back = keep(lr_image_read_on(path, &image->grid, log));
    assert_same(image, back, 1e-13);
    lr_grid grid = image->grid;
    assert_none(lr_image_read(path, log), LR_BAD_INPUT, &files.log, "does not say where its voxels are");
    assert_int_equal(lr_grid_read(path, &grid, log), LR_BAD_INPUT);
    assert_null(lr_image_read_on(path, NULL, log));
    grid.size[0] = ny; /* another shape with the same number of voxels */
    grid.size[1] = nx;
    assert_none(lr_image_read_on(path, &grid, log), LR_BAD_INPUT, &files.log, "[nz][ny][nx] = [3][5][4]");
    unsigned char *bytes = bytes_read(path, &count);
    memcpy(strchr((char *)bytes + 10, '<'), ">i2", 3);
    for (int n = 0; n < 2 * num_voxels; n++) /* 0x0001, 0x0203, ... */
        bytes[count - 4 * num_voxels + (size_t)n] = (unsigned char)(n % 128);
    bytes_write(path, bytes, count - 2 * num_voxels);
    back = keep(lr_image_read_on(path, &image->grid, log));
    assert_true(back->values[1] == 515.0f && back->values[num_voxels - 1] == 118 * 256 + 119);
}

/* Voxel n of the file has the value n; the header names the file "voxels". */
static lr_image *read_numbered(const struct test_folder *folder, const char *name, const char *header)
{
    float values[num_voxels];
    char whole[2048];
    const char *path = file_in(folder, name);
    const bool lacks_end = strncmp(header, "!INTERFILE", 10) == 0 && strstr(header, "!END") == NULL;
    for (int n = 0; n < num_voxels; n++) values[n] = (float)n;
    bytes_write(file_in(folder, "voxels"), values, sizeof(values));
    snprintf(whole, sizeof(whole), "%s%s", header, lacks_end ? "!END OF INTERFILE :=\n" : "");
    text_write(path, whole);
    return read_good(path);
}

/* The voxel whose centre is at this position in our frame has this value. */
struct place {
    double at_mm[3], value;
};

static void assert_value(const lr_image *image, const struct place *place, const char *what)
{
    int index[3];
    for (int k = 0; k < 3; k++) {
        const double at = (place->at_mm[k] - image->grid.origin_mm[k]) / image->grid.voxel_mm[k];
        index[k] = (int)lround(at);
        if (fabs(at - index[k]) > 1e-9 || index[k] < 0 || index[k] >= image->grid.size[k])
            fail_msg("%s: no voxel is there: axis %d gives %.12g", what, k, at);
    }
    const double found = image->values[index[0] + nx * (index[1] + ny * index[2])];
    if (found != place->value) fail_msg("%s: the place of %g has %g", what, place->value, found);
}

#define SIZES                                                                                                          \
    "!matrix size [1] := 5\n!matrix size[2]:=4\n!Matrix_Size [3] := 3\nscaling factor (mm/pixel) [1] := 2\n"           \
    "scaling factor (mm/pixel) [2] := 3\nscaling factor (mm/pixel) [3] := 4\n"
#define FLOATS "imagedata byte order := LITTLEENDIAN\n!number format := float\n!number of bytes per pixel := 4\n"
#define HEAD "!INTERFILE :=\nname of data file := voxels\n"
#define END "!END OF INTERFILE :=\n"

static void test_places(void **state)
{
    for (struct text_cases cases = cases_of(IO_CASES, "places"); next_case(&cases);) {
        lr_image *image = read_numbered(&files.folder, cases.fields[1], cases.fields[3]);
        struct place place;
        const char *at = cases.fields[2];
        for (int used = 0; at[0] != '\0'; at += used + strspn(at + used, "; ")) {
            double *mm = place.at_mm;
            assert_int_equal(sscanf(at, "%lf %lf %lf %lf%n", &mm[0], &mm[1], &mm[2], &place.value, &used), 4);
            assert_value(image, &place, cases.fields[0]);
        }
    }
}

/* A header is refused when its last lines are missing, however many they are. */
static void test_cut_headers(void **state)
{
    const lr_grid grid = {.size = {5, 4, 3}, .voxel_mm = {2, 3, 4}, .origin_mm = {-4, -4.5, 20}};
    lr_image *image = keep(lr_image_create(&grid, NULL));
    for (int k = 0; k < 3; k++) {
        assert_int_equal(lr_image_write(formats[k].name, image, NULL), LR_OK);
        char *text = (char *)bytes_read(formats[k].name, NULL);
        for (char *end = strrchr(text, '\n'); end != NULL; end = strrchr(text, '\n')) {
            end[0] = '\0';
            char *line = strrchr(text, '\n');
            if (line == NULL) continue;
            line[1] = '\0';
            text_write(formats[k].name, text);
            assert_null(lr_image_read(formats[k].name, &files.log.log));
        }
    }
}

/* A map of 0 and 1 without a byte order in its header, which means big endian, and a map that ends in the NaN of
 * that order. */
static void test_wrong_byte_order(void **state)
{
    const char *path = "a.hv";
    float values[num_voxels];
    for (int n = 0; n < num_voxels; n++) values[n] = n % 3 == 0 ? 1.0f : 0.0f;
    text_write(path, HEAD "!number format := float\n!number of bytes per pixel := 4\n" SIZES END);
    for (int run = 0; run < 2; run++) {
        bytes_write("voxels", values, sizeof(values));
        assert_refused(path, "in the other byte order only");
        memcpy(&values[num_voxels - 1], "\x7f\xc0\x00\x3f", 4);
    }
}

/* All 48 orders and directions of a MetaImage's axes give the same image; ITK uses LPS coordinates. */
static void test_metaimage_orientations(void **state)
{
    const int size[3] = {nx, ny, nz};
    const double voxel[3] = {2, 3, 4}, first[3] = {10, -20, 30}; /* LPS */
    for (int n = 0; n < 48; n++) {
        const int *axis = axis_orders[n / 8];
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
                 "ObjectType = Image\nNDims = 3\nDimSize = %d %d %d\nElementSpacing = %g %g %g\nOffset = %g %g %g\n"
                 "TransformMatrix = %d %d %d %d %d %d %d %d %d\nElementType = MET_FLOAT\nElementDataFile = voxels\n",
                 sizes[0], sizes[1], sizes[2], spacing[0], spacing[1], spacing[2], offset[0], offset[1], offset[2],
                 directions[0], directions[1], directions[2], directions[3], directions[4], directions[5],
                 directions[6], directions[7], directions[8]);
        lr_image *image = read_numbered(&files.folder, "a.mhd", header);
        for (int v = 0; v < num_voxels; v++) {
            const int at[3] = {v % sizes[0], v / sizes[0] % sizes[1], v / sizes[0] / sizes[1]};
            struct place place = {.value = v};
            for (int k = 0; k < 3; k++) {
                double lps = offset[k];
                for (int f = 0; f < 3; f++) lps += at[f] * spacing[f] * directions[3 * f + k];
                place.at_mm[k] = k < 2 ? -lps : lps;
            }
            assert_value(image, &place, header);
        }
    }
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

/* The numbers are 100 - n, so that negative ones, which wrap around in unsigned types, begin at n = 101. */
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

static void test_number_types(void **state)
{
    const char *data = "voxels", *path = "a.hdr", *meta = "a.mhd";
    char header[1024];
    for (size_t n = 0; n < 2 * sizeof(kinds) / sizeof(kinds[0]); n++) {
        const struct kind *kind = &kinds[n / 2];
        const bool big = n % 2 == 1;
        write_numbers(data, kind, big);
        snprintf(header, sizeof(header), HEAD "%s%s!number format := %s\n!number of bytes per pixel := %d\n" SIZES END,
                 big ? "" : "imagedata byte order := littleendian\n",
                 big && n % 4 == 1 ? "imagedata byte order := BIGENDIAN\n" : "", kind->interfile, kind->bytes);
        text_write(path, header);
        snprintf(header, sizeof(header),
                 "NDims = 3\nDimSize = 5 4 3\nElementByteOrderMSB = %s\nElementType = %s\n"
                 "HeaderSize = -1\nElementDataFile = voxels\n",
                 big ? "True" : "False", kind->meta);
        text_write(meta, header);
        for (int k = 0; k < 2; k++) {
            lr_image *image = read_good(k == 0 ? path : meta);
            const float first = strstr(kind->interfile, "unsigned") != NULL ? 100 : 20;
            float sum = 0;
            for (int v = 0; v < num_voxels; v++) sum += image->values[v];
            assert_true(sum == num_voxels * (first - 0.5f * (num_voxels - 1)));
        }
    }
}

/* --- refusals --- */

static void refuse_each(const char *path, const char *section)
{
    for (struct text_cases cases = cases_of(IO_CASES, section); next_case(&cases);) {
        text_write(path, cases.fields[1]);
        assert_refused(path, cases.fields[0]);
    }
}

static void test_interfile_refusals(void **state)
{
    const struct test_folder *folder = &files.folder;
    const float nan_value = NAN;
    const char *path = file_in(folder, "a.hv"), *other = file_in(folder, "b.hv");
    read_numbered(folder, "a.hv", HEAD FLOATS SIZES);
    refuse_each(path, "interfile");
    bytes_write(path, "!INTERFILE :=\n\0\0\0", 17);
    assert_refused(path, "is not text");
    assert_refused(folder->path, "is a folder");
    mkdir(other, 0777);
    assert_refused(other, "is a folder: give a file");
    rmdir(other);
    assert_refused("no/such.hv", "No such file");
    bytes_write(file_in(folder, "voxels"), &nan_value, 4);
    text_write(path, HEAD FLOATS SIZES "matrix size [1] := 1\nmatrix size [2] := 1\nmatrix size [3] := 1\n" END);
    assert_refused(path, "holds nan in its voxel (0, 0, 0)");
    text_write(other = file_in(folder, "a.v"), "\1\2\3");
    assert_refused(other, "name the header, which ends in .hv");
    bytes_write(other = file_in(folder, "a.hdr"), "\x5c\x01\0\0", 4);
    assert_refused(other, "NIfTI-1");
}

#define META "ObjectType = Image\nNDims = 3\nDimSize = 5 4 3\n"
#define TAIL "ElementType = MET_FLOAT\nElementDataFile = voxels\n"

static void test_metaimage_refusals(void **state)
{
    read_numbered(&files.folder, "a.mhd", META TAIL);
    refuse_each("./a.mhd", "metaimage");
}

/* named: the file for which the error says that there is no room. */
static void assert_no_room(const char *path, const char *named, const lr_image *image, size_t bytes)
{
    struct test_log log = TEST_LOG(log);
    assert_disk_full(bytes, lr_image_write(path, image, &log.log), &log, named);
}

/* A write that fills the disk leaves no new file, and an older file of that name is unchanged. */
static void test_disk_full(void **state)
{
    lr_image *image = make_image();
    for (int n = 0; n < num_formats; n++) {
        assert_no_room(formats[n].name, formats[n].voxels, image, 100);
        assert_int_equal(count_files(), 0);
    }
    static const char *const older[2][2] = {{"a.nii.gz", "a.nii.gz"}, {"a.hv", "a.v"}};
    for (int n = 0; n < 2; n++) { /* there is room for the voxels of a.hv, but not for the header */
        text_write(older[n][1], "older");
        assert_no_room(older[n][0], older[n][0], image, n == 0 ? 100 : 300);
        assert_holds(older[n][1], "older");
        assert_int_equal(folder_visit(&files.folder, true), 1);
    }
    assert_int_equal(lr_image_write("image.raw", image, &files.log.log), LR_USAGE);
    assert_int_equal(lr_image_write("image.img", image, &files.log.log), LR_USAGE);
    assert_int_equal(lr_image_write(NULL, image, &files.log.log), LR_USAGE);
    image->values[4 + nx * (3 + ny * 2)] = NAN;
    for (int n = 3; n < 5; n++) {
        assert_fails(lr_image_write(formats[n].name, image, &files.log.log), LR_BAD_INPUT, &files.log,
                     "voxel (4, 3, 2)");
        assert_int_equal(count_files(), 0);
    }
}

/* If the ending of a file's name says nothing about the format, its first bytes decide. */
static void test_recognition(void **state)
{
    static const char *const sources[] = {"a.hv", "a.mha", "a.nii.gz"};
    lr_image *image = make_image();
    for (int n = 0; n < 3; n++) {
        const char *path = sources[n], *other = "image";
        assert_ints(lr_image_write(path, image, NULL), LR_OK, rename(path, other), 0);
        assert_same(image, keep(lr_image_read(other, NULL)), 1e-13);
    }
}

group_main("io image formats", NULL, NULL, FILES_CASE(test_round_trip), FILES_CASE(test_npy), FILES_CASE(test_places),
           FILES_CASE(test_wrong_byte_order), FILES_CASE(test_cut_headers), FILES_CASE(test_metaimage_orientations),
           FILES_CASE(test_number_types), FILES_CASE(test_interfile_refusals), FILES_CASE(test_metaimage_refusals),
           FILES_CASE(test_disk_full), FILES_CASE(test_recognition))
