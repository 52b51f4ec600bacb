/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * NIfTI images: what is written comes back, whatever the orientation and number type of a file; and
 * what cannot be right is refused with a sentence. */
#include "io/files.h"

#include <nifti1_io.h>

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
static nifti_1_header plain_header(int datatype, int bytes)
{
    nifti_1_header header = {.sizeof_hdr = header_bytes, .datatype = (short)datatype};
    const short dim[8] = {3, nx, ny, nz, 1, 1, 1, 1};
    memcpy(header.dim, dim, sizeof(dim));
    header.bitpix = (short)(8 * bytes);
    header.vox_offset = data_start;
    header.xyzt_units = NIFTI_UNITS_MM;
    header.sform_code = NIFTI_XFORM_SCANNER_ANAT;
    for (int k = 0; k < 4; k++) header.pixdim[k] = 1.0f;
    header.srow_x[0] = header.srow_y[1] = header.srow_z[2] = 1.0f;
    memcpy(header.magic, "n+1", 4);
    return header;
}

static void write_file(const char *path, const nifti_1_header *header, const void *values, size_t count)
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
    nifti_1_header h;
    memcpy(&h, bytes, sizeof(h));
    assert_int_equal(count, data_start + num_voxels * sizeof(float));
    assert_int_equal(h.sform_code, 1);
    assert_int_equal(h.qform_code, 1);
    assert_int_equal(h.datatype, DT_FLOAT32);
    assert_int_equal(XYZT_TO_SPACE(h.xyzt_units), NIFTI_UNITS_MM);
    const mat44 q = nifti_quatern_to_mat44(h.quatern_b, h.quatern_c, h.quatern_d, h.qoffset_x, h.qoffset_y, h.qoffset_z,
                                           h.pixdim[1], h.pixdim[2], h.pixdim[3], h.pixdim[0]);
    const float *rows[3] = {h.srow_x, h.srow_y, h.srow_z};
    for (int k = 0; k < 3; k++) {
        for (int f = 0; f < 3; f++) {
            const float expected = f == k ? (float)image->grid.voxel_mm[k] : 0.0f;
            assert_true(rows[k][f] == expected && q.m[k][f] == expected);
        }
        assert_true(rows[k][3] == (float)image->grid.origin_mm[k] && q.m[k][3] == rows[k][3]);
    }
    assert_non_null(strstr(h.descrip, lr_version()));
    free(bytes);
    lr_image_destroy(image);
    folder_finish(&folder);
}

/* Writes the image with file axis f along axis[f] of ours, reversed where flipped. */
static void write_turned(const char *path, const lr_image *image, const int axis[3], const bool flipped[3],
                         bool as_qform)
{
    nifti_1_header h = plain_header(DT_FLOAT32, 4);
    mat44 m = {{{0}}};
    int size[3];
    for (int k = 0; k < 3; k++) m.m[k][3] = (float)image->grid.origin_mm[k];
    m.m[3][3] = 1.0f;
    for (int f = 0; f < 3; f++) {
        const int k = axis[f];
        const double voxel = image->grid.voxel_mm[k];
        size[f] = image->grid.size[k];
        h.dim[f + 1] = (short)size[f];
        m.m[k][f] = (float)(flipped[f] ? -voxel : voxel);
        if (flipped[f]) m.m[k][3] = (float)(image->grid.origin_mm[k] + (size[f] - 1) * voxel);
    }
    memcpy(h.srow_x, m.m[0], sizeof(h.srow_x));
    memcpy(h.srow_y, m.m[1], sizeof(h.srow_y));
    memcpy(h.srow_z, m.m[2], sizeof(h.srow_z));
    if (as_qform) {
        h.sform_code = 0;
        h.qform_code = 1;
        nifti_mat44_to_quatern(m, &h.quatern_b, &h.quatern_c, &h.quatern_d, &h.qoffset_x, &h.qoffset_y, &h.qoffset_z,
                               &h.pixdim[1], &h.pixdim[2], &h.pixdim[3], &h.pixdim[0]);
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

/* Writes 60 numbers of a type, as they are or with every byte order turned round. */
static void write_numbers(const char *path, int datatype, bool swapped, int bytes)
{
    nifti_1_header h = plain_header(datatype, bytes);
    h.scl_slope = 0.5f;
    h.scl_inter = -3.0f;
    unsigned char values[num_voxels * 8];
    for (int n = 0; n < num_voxels; n++) {
        unsigned char *at = values + n * bytes;
        const float single = (float)n;
        const double twice = n;
        const int64_t whole = n; /* its low bytes, on the little-endian machines tests run on */
        const void *from = datatype == DT_FLOAT32   ? (const void *)&single
                           : datatype == DT_FLOAT64 ? (const void *)&twice
                                                    : (const void *)&whole;
        memcpy(at, from, (size_t)bytes);
    }
    if (swapped) {
        nifti_swap_Nbytes(num_voxels, bytes, values);
        swap_nifti_header(&h, 1);
    }
    write_file(path, &h, values, (size_t)(num_voxels * bytes));
}

static void test_number_types(void **state)
{
    (void)state;
    struct test_folder folder;
    char path[128];
    folder_init(&folder);
    folder_file(&folder, path, "numbers.nii");
    const int types[][2] = {{DT_UINT8, 1},  {DT_INT8, 1},    {DT_INT16, 2},   {DT_UINT16, 2}, {DT_INT32, 4},
                            {DT_UINT32, 4}, {DT_FLOAT32, 4}, {DT_FLOAT64, 8}, {DT_INT64, 8},  {DT_UINT64, 8}};
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
    const nifti_1_header good = plain_header(DT_FLOAT32, 4);
    nifti_1_header h = good;
    h.srow_x[1] = 2e-4f;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "oblique or sheared");
    h.srow_x[1] = 0.5e-4f; /* within the tolerance */
    write_file(path, &h, values, sizeof(values));
    lr_image *image = lr_image_read(path, NULL);
    assert_non_null(image);
    lr_image_destroy(image);
    h = good;
    h.srow_y[1] = 0.0f;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "voxel size of 0 mm along its axis 2");
    h = good;
    h.srow_y[1] = 0.0f;
    h.srow_x[1] = 1.0f;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "same direction");
    h = good;
    h.srow_z[2] = NAN;
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
    h.datatype = DT_RGB24;
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
    const nifti_1_header h = plain_header(DT_FLOAT32, 4);
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
    nifti_1_header header = plain_header(DT_FLOAT32, 4);
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
