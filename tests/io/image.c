/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * NIfTI images: what is written comes back, whatever the orientation and number type of a file; and
 * what cannot be right is refused with a sentence. */
#include "io/files.h"
#include "io/images/nifti_header.h"

#include <math.h>

enum { nx = 5, ny = 4, nz = 3, num_voxels = nx * ny * nz, header_bytes = 348, data_start = 352 };

/* No two voxels are alike and no axis is symmetric. */
static lr_image *make_image(void)
{
    const lr_grid grid = {{nx, ny, nz}, {0.45, 1.1, 2.2}, {-20.3, 1.7, -33.033}};
    lr_image *image = lr_image_create(&grid, NULL);
    assert_non_null(image);
    for (int n = 0; n < num_voxels; n++) image->values[n] = (float)n * 0.3f - 4.0f;
    return image;
}

/* Field by field: padding need not agree. */
static void assert_same_grid(const lr_grid *a, const lr_grid *b)
{
    for (int k = 0; k < 3; k++) {
        assert_int_equal(a->size[k], b->size[k]);
        assert_true(a->voxel_mm[k] == b->voxel_mm[k]);
        assert_true(a->origin_mm[k] == b->origin_mm[k]);
    }
}

static void assert_same(const lr_image *a, const lr_image *b)
{
    assert_non_null(b);
    assert_same_grid(&a->grid, &b->grid);
    assert_memory_equal(a->values, b->values, (size_t)lr_grid_num_voxels(&a->grid) * sizeof(float));
}

/* A header of the standard's own meaning, for files that LORaster would not write. */
static struct nifti_header plain_header(int datatype, int bytes)
{
    struct nifti_header header = {.sizeof_hdr = header_bytes, .datatype = (int16_t)datatype};
    const int16_t dim[8] = {3, nx, ny, nz, 1, 1, 1, 1};
    memcpy(header.dim, dim, sizeof(dim));
    header.bitpix = (int16_t)(8 * bytes);
    header.vox_offset = data_start;
    header.xyzt_units = NIFTI_MILLIMETRE;
    header.sform_code = NIFTI_SCANNER_ANATOMY;
    for (int k = 0; k < 4; k++) header.pixdim[k] = 1.0f;
    header.srow[0][0] = header.srow[1][1] = header.srow[2][2] = 1.0f;
    memcpy(header.magic, "n+1", 4);
    return header;
}

static void write_file(const char *path, const struct nifti_header *header, const void *values, size_t count)
{
    unsigned char *bytes = calloc(1, data_start + count);
    assert_non_null(bytes);
    memcpy(bytes, header, header_bytes);
    memcpy(bytes + data_start, values, count);
    bytes_write(path, bytes, data_start + count);
    free(bytes);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    lr_image *image = make_image();
    const char *const names[] = {"a.nii", "a.nii.gz"};
    for (int n = 0; n < 2; n++) {
        struct test_log log;
        test_log_init(&log);
        folder_file(&folder, path, names[n]);
        assert_int_equal(lr_image_write(path, image, &log.log), LR_OK);
        lr_image *back = lr_image_read(path, &log.log);
        assert_same(image, back);
        lr_grid grid;
        assert_int_equal(lr_grid_read(path, &grid, &log.log), LR_OK);
        assert_same_grid(&grid, &image->grid);
        assert_int_equal(log.num_warnings, 0);
        lr_image_destroy(back);
    }
    assert_int_equal(folder_visit(&folder, false), 2);
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* Other programs find the frame in the header: sform and qform are both diag(voxel) and the centre
 * of the first voxel. */
static void test_header(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    size_t count;
    folder_init(&folder);
    lr_image *image = make_image();
    assert_int_equal(lr_image_write(folder_file(&folder, path, "a.nii"), image, NULL), LR_OK);
    unsigned char *bytes = bytes_read(path, &count);
    struct nifti_header h;
    memcpy(&h, bytes, sizeof(h));
    assert_int_equal(count, data_start + num_voxels * sizeof(float));
    assert_int_equal(h.sform_code, 1);
    assert_int_equal(h.qform_code, 1);
    assert_int_equal(h.datatype, NIFTI_FLOAT32);
    assert_int_equal(h.xyzt_units & NIFTI_LENGTH_BITS, NIFTI_MILLIMETRE);
    for (int k = 0; k < 3; k++) {
        for (int f = 0; f < 3; f++) assert_true(h.srow[k][f] == (f == k ? (float)image->grid.voxel_mm[k] : 0.0f));
        assert_true(h.srow[k][3] == (float)image->grid.origin_mm[k] && h.qoffset[k] == h.srow[k][3]);
        assert_true(h.pixdim[k + 1] == h.srow[k][k] && h.quatern[k] == 0.0f);
    }
    assert_true(h.pixdim[0] == 1.0f);
    assert_non_null(strstr(h.descrip, lr_version()));
    free(bytes);
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* Hamilton's product of two quaternions. */
static void multiply(const double p[4], const double q[4], double product[4])
{
    product[0] = p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3];
    product[1] = p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2];
    product[2] = p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1];
    product[3] = p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0];
}

/* Finds the unit quaternion q = (a, b, c, d), a >= 0, by which q v q* is the rotation of v, among those that turn a
 * cube into itself. */
static void find_quaternion(const double rotation[3][3], float bcd[3])
{
    static const double parts[7] = {0.0, 0.5, -0.5, 0.70710678118654752, -0.70710678118654752, 1.0, -1.0};
    for (int n = 0; n < 7 * 7 * 7 * 7; n++) {
        const double q[4] = {parts[n % 7], parts[n / 7 % 7], parts[n / 49 % 7], parts[n / 343]};
        const double conjugate[4] = {q[0], -q[1], -q[2], -q[3]};
        double off = fabs(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1.0) + (q[0] < 0.0);
        for (int f = 0; f < 3; f++) {
            const double axis[4] = {0.0, f == 0, f == 1, f == 2};
            double half[4], turned[4];
            multiply(q, axis, half);
            multiply(half, conjugate, turned);
            for (int k = 0; k < 3; k++) off += fabs(turned[k + 1] - rotation[k][f]);
        }
        for (int k = 0; k < 3 && off < 1e-9; k++) bcd[k] = (float)q[k + 1];
        if (off < 1e-9) return;
    }
    fail_msg("no quaternion for this rotation");
}

/* Writes the image with file axis f along axis[f] of ours, reversed where flipped. */
static void write_turned(const char *path, const lr_image *image, const int axis[3], const bool flipped[3],
                         bool as_qform)
{
    struct nifti_header h = plain_header(NIFTI_FLOAT32, 4);
    double rotation[3][3] = {{0}};
    int size[3];
    memset(h.srow, 0, sizeof(h.srow));
    for (int k = 0; k < 3; k++) h.srow[k][3] = (float)image->grid.origin_mm[k];
    for (int f = 0; f < 3; f++) {
        const int k = axis[f];
        const double voxel = image->grid.voxel_mm[k];
        size[f] = image->grid.size[k];
        h.dim[f + 1] = (int16_t)size[f];
        h.pixdim[f + 1] = (float)voxel;
        rotation[k][f] = flipped[f] ? -1.0 : 1.0;
        h.srow[k][f] = (float)(flipped[f] ? -voxel : voxel);
        if (flipped[f]) h.srow[k][3] = (float)(image->grid.origin_mm[k] + (size[f] - 1) * voxel);
    }
    if (as_qform) {
        h.sform_code = 0;
        h.qform_code = 1;
        const bool even = (axis[1] - axis[0] + 3) % 3 == 1;
        const bool mirrored = even != ((flipped[0] + flipped[1] + flipped[2]) % 2 == 0);
        h.pixdim[0] = mirrored ? -1.0f : 1.0f;
        for (int k = 0; k < 3 && mirrored; k++) rotation[k][2] = -rotation[k][2];
        for (int k = 0; k < 3; k++) h.qoffset[k] = h.srow[k][3];
        memset(h.srow, 0, sizeof(h.srow));
        find_quaternion((const double(*)[3])rotation, h.quatern);
    }
    float values[num_voxels];
    const int stride[3] = {1, nx, nx * ny};
    for (int n = 0; n < num_voxels; n++) {
        const int at[3] = {n % size[0], n / size[0] % size[1], n / size[0] / size[1]};
        int from = 0;
        for (int f = 0; f < 3; f++) from += stride[axis[f]] * (flipped[f] ? size[f] - 1 - at[f] : at[f]);
        values[n] = image->values[from];
    }
    write_file(path, &h, values, sizeof(values));
}

/* Six orders of the axes and eight directions: the same image each time. */
static void test_orientations(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    folder_file(&folder, path, "turned.nii");
    lr_image *image = make_image();
    const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int n = 0; n < 96; n++) {
        const bool flipped[3] = {n & 1, n & 2, n & 4};
        write_turned(path, image, orders[n / 8 % 6], flipped, n >= 48);
        struct test_log log;
        test_log_init(&log);
        lr_image *back = lr_image_read(path, &log.log);
        if (back == NULL) fail_msg("orientation %d: %s", n, log.error);
        assert_memory_equal(back->grid.size, image->grid.size, sizeof(image->grid.size));
        assert_memory_equal(back->values, image->values, num_voxels * sizeof(float));
        for (int k = 0; k < 3; k++) { /* the header holds single precision */
            assert_close(back->grid.voxel_mm[k], image->grid.voxel_mm[k], 3e-7);
            assert_close(back->grid.origin_mm[k], image->grid.origin_mm[k], 1e-6);
        }
        lr_image_destroy(back);
    }
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* Turns the order of a number's bytes round. */
static void turn(unsigned char *bytes, int count)
{
    for (int k = 0; k < count / 2; k++) {
        const unsigned char kept = bytes[k];
        bytes[k] = bytes[count - 1 - k];
        bytes[count - 1 - k] = kept;
    }
}

/* The header's numbers of more than a byte: offset, count and bytes of each, from nifti1.h. */
static const int fields[][3] = {{0, 1, 4},   {32, 1, 4},  {36, 1, 2},  {40, 8, 2},  {56, 3, 4},
                                {68, 4, 2},  {76, 8, 4},  {108, 3, 4}, {120, 1, 2}, {124, 4, 4},
                                {140, 2, 4}, {252, 2, 2}, {256, 18, 4}};

/* Writes 60 numbers of a type, as they are or with every byte order turned round. */
static void write_numbers(const char *path, int datatype, bool swapped, int bytes)
{
    struct nifti_header h = plain_header(datatype, bytes);
    h.scl_slope = 0.5f;
    h.scl_inter = -3.0f;
    unsigned char values[num_voxels * 8];
    for (int n = 0; n < num_voxels; n++) {
        unsigned char *at = values + n * bytes;
        const float single = (float)n;
        const double twice = n;
        const int64_t whole = n; /* its low bytes, on the little-endian machines tests run on */
        const void *from = datatype == NIFTI_FLOAT32   ? (const void *)&single
                           : datatype == NIFTI_FLOAT64 ? (const void *)&twice
                                                       : (const void *)&whole;
        memcpy(at, from, (size_t)bytes);
    }
    for (int n = 0; n < num_voxels && swapped; n++) turn(values + n * bytes, bytes);
    for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]) && swapped; k++)
        for (int n = 0; n < fields[k][1]; n++)
            turn((unsigned char *)&h + fields[k][0] + n * fields[k][2], fields[k][2]);
    write_file(path, &h, values, (size_t)(num_voxels * bytes));
}

static void test_number_types(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    folder_file(&folder, path, "numbers.nii");
    const int types[][2] = {{NIFTI_UINT8, 1}, {NIFTI_INT8, 1},   {NIFTI_INT16, 2},   {NIFTI_UINT16, 2},
                            {NIFTI_INT32, 4}, {NIFTI_UINT32, 4}, {NIFTI_FLOAT32, 4}, {NIFTI_FLOAT64, 8},
                            {NIFTI_INT64, 8}, {NIFTI_UINT64, 8}};
    for (int n = 0; n < 20; n++) {
        write_numbers(path, types[n / 2][0], n % 2 == 1 && types[n / 2][1] > 1, types[n / 2][1]);
        struct test_log log;
        test_log_init(&log);
        lr_image *image = lr_image_read(path, &log.log);
        if (image == NULL) fail_msg("type %d: %s", types[n / 2][0], log.error);
        for (int v = 0; v < num_voxels; v++) assert_true(image->values[v] == 0.5f * (float)v - 3.0f);
        lr_image_destroy(image);
    }
    folder_finish(&folder);
}

/* Reads a file that must be refused and looks for words in the sentence. */
static void assert_refused(const char *path, const char *words)
{
    struct test_log log;
    test_log_init(&log);
    lr_image *image = lr_image_read(path, &log.log);
    if (image != NULL || strstr(log.error, words) == NULL || strstr(log.error, path) == NULL)
        fail_msg("expected \"%s\" about %s, got \"%s\"", words, path, log.error);
    assert_int_equal(log.status, LR_BAD_INPUT);
}

/* One field of a good header spoilt at a time. */
static void test_refusals(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    float values[num_voxels] = {0.0f};
    folder_init(&folder);
    folder_file(&folder, path, "bad.nii");
    const struct nifti_header good = plain_header(NIFTI_FLOAT32, 4);
    struct nifti_header h = good;
    h.srow[0][1] = 2e-4f;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "oblique or sheared");
    h.srow[0][1] = 0.5e-4f; /* within the tolerance */
    write_file(path, &h, values, sizeof(values));
    lr_image *image = lr_image_read(path, NULL);
    assert_non_null(image);
    lr_image_destroy(image);
    h = good;
    h.srow[1][1] = 0.0f;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "voxel size of 0 mm along its axis 2");
    h = good;
    h.srow[1][1] = 0.0f;
    h.srow[0][1] = 1.0f;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "same direction");
    h = good;
    h.srow[2][2] = NAN;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "axis 3");
    h = good;
    h.dim[0] = 4;
    h.dim[4] = 2;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "2 volumes");
    h = good;
    h.dim[2] = 0;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "size 0 along its axis 2");
    h = good;
    h.datatype = NIFTI_RGB24;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "RGB24");
    h = good;
    h.vox_offset = 0.0f;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "start at byte 0");
    memcpy(h.magic, "ni1", 4);
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, ".hdr/.img pair");
    h = good;
    h.sizeof_hdr = 540;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "NIfTI-2");
    bytes_write(path, "hello", 5);
    assert_refused(path, "not a NIfTI-1 image");
    folder_finish(&folder);
}

static void test_bad_values(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    folder_file(&folder, path, "bad.nii");
    const struct nifti_header h = plain_header(NIFTI_FLOAT32, 4);
    float values[num_voxels] = {0.0f};
    values[3 + nx * (2 + ny * 1)] = NAN;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "voxel (3, 2, 1)");
    values[3 + nx * (2 + ny * 1)] = 0.0f;
    values[0] = -INFINITY;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "voxel (0, 0, 0)");
    assert_int_equal(folder_visit(&folder, true), 1);

    struct test_log log;
    test_log_init(&log);
    lr_image *image = make_image();
    image->values[4 + nx * (3 + ny * 2)] = NAN;
    assert_int_equal(lr_image_write(path, image, &log.log), LR_BAD_INPUT);
    assert_non_null(strstr(log.error, "voxel (4, 3, 2)"));
    assert_int_equal(lr_image_write("image.img", image, &log.log), LR_USAGE);
    assert_int_equal(folder_visit(&folder, false), 0);
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* Frames of a file of several volumes, plain and compressed, and what is not there. */
static void test_frames(void **state)
{
    (void)state;
    enum { FRAMES = 3 };
    float values[FRAMES * num_voxels];
    struct nifti_header header = plain_header(NIFTI_FLOAT32, 4);
    header.dim[0] = 4;
    header.dim[4] = FRAMES;
    for (int n = 0; n < FRAMES * num_voxels; n++) values[n] = (float)n * 0.5f;
    static const char *const names[] = {"frames_test.nii", "frames_test.nii.gz"};
    for (int k = 0; k < 2; k++) {
        struct test_log log;
        test_log_init(&log);
        write_file(names[k], &header, values, sizeof(values));
        assert_int_equal(lr_image_num_frames(names[k]), FRAMES);
        for (int frame = 1; frame <= FRAMES; frame++) {
            lr_image *image = lr_image_read_frame(names[k], frame, &log.log);
            if (image == NULL) fail_msg("%s", log.error);
            assert_memory_equal(image->values, values + (frame - 1) * num_voxels, num_voxels * sizeof(float));
            lr_image_destroy(image);
        }
        assert_null(lr_image_read_frame(names[k], FRAMES + 1, &log.log));
        assert_non_null(strstr(log.error, "has no frame 4: it has 3"));
        assert_null(lr_image_read_frame(names[k], 0, &log.log));
        assert_int_equal(log.status, LR_USAGE);
        assert_null(lr_image_read(names[k], &log.log));
        assert_non_null(strstr(log.error, "holds 3 volumes along its axis 4"));
        if (k == 0) { /* the last frame is not whole */
            assert_int_equal(truncate(names[0], data_start + (long)sizeof(values) - 4), 0);
            lr_image *image = lr_image_read_frame(names[0], FRAMES - 1, &log.log);
            assert_non_null(image);
            lr_image_destroy(image);
            assert_null(lr_image_read_frame(names[0], FRAMES, &log.log));
            assert_non_null(strstr(log.error, "is truncated or damaged"));
        }
        remove(names[k]);
    }
    assert_int_equal(lr_image_num_frames("frames_test_gone.nii"), 0);
}

/* A file cut at any byte is refused; whole, it is read. */
static void test_truncation(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128], part[128];
    folder_init(&folder);
    lr_image *image = make_image();
    const char *const names[] = {"a.nii", "a.nii.gz"}, *const parts[] = {"b.nii", "b.nii.gz"};
    for (int n = 0; n < 2; n++) {
        size_t count;
        folder_file(&folder, path, names[n]);
        folder_file(&folder, part, parts[n]);
        assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
        unsigned char *bytes = bytes_read(path, &count);
        for (size_t length = 0; length < count; length++) {
            struct test_log log;
            test_log_init(&log);
            bytes_write(part, bytes, length);
            if (lr_image_read(part, &log.log) != NULL || log.status != LR_BAD_INPUT)
                fail_msg("%s cut to %zu of %zu bytes: \"%s\"", path, length, count, log.error);
        }
        free(bytes);
    }
    assert_refused("no/such.nii", "No such file");
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* A compressed file with one bit turned is refused or, where the bit means nothing (a time stamp,
 * padding), read as it was: no damaged voxel gets through. */
static void test_damage(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    size_t count;
    folder_init(&folder);
    lr_image *image = make_image();
    folder_file(&folder, path, "a.nii.gz");
    assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
    unsigned char *bytes = bytes_read(path, &count);
    int num_refused = 0;
    for (size_t at = 0; at < count; at++) {
        bytes[at] ^= 0x10;
        bytes_write(path, bytes, count);
        bytes[at] ^= 0x10;
        lr_image *back = lr_image_read(path, NULL);
        num_refused += back == NULL;
        if (back != NULL) assert_same(image, back);
        lr_image_destroy(back);
    }
    assert_true(num_refused > (int)count * 9 / 10);
    free(bytes);
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* Neither the target nor anything beside it appears, and an older file stays as it was. */
static void test_disk_full(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    lr_image *image = make_image();
    const char *const names[] = {"a.nii", "a.nii.gz"};
    for (int n = 0; n < 2; n++) {
        struct test_log log;
        test_log_init(&log);
        folder_file(&folder, path, names[n]);
        const struct rlimit before = disk_fill(100);
        const lr_status status = lr_image_write(path, image, &log.log);
        disk_empty(before);
        assert_int_equal(status, LR_FAILED);
        assert_int_equal(log.status, LR_FAILED);
        assert_non_null(strstr(log.error, path));
        assert_int_equal(folder_visit(&folder, false), 0);
    }
    bytes_write(path, "older", 5);
    const struct rlimit before = disk_fill(100);
    assert_int_equal(lr_image_write(path, image, NULL), LR_FAILED);
    disk_empty(before);
    size_t count;
    unsigned char *bytes = bytes_read(path, &count);
    assert_int_equal(count, 5);
    assert_memory_equal(bytes, "older", 5);
    assert_int_equal(folder_visit(&folder, false), 1);
    free(bytes);
    lr_image_destroy(image);
    folder_finish(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_header),   cmocka_unit_test(test_orientations),
        cmocka_unit_test(test_number_types), cmocka_unit_test(test_refusals), cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_truncation),   cmocka_unit_test(test_frames),   cmocka_unit_test(test_damage),
        cmocka_unit_test(test_disk_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
