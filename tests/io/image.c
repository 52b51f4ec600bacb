/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * NIfTI images: files that are written have the standard's frame, files of any orientation and number type are read,
 * and invalid files are refused with a sentence. image_formats.c tests what NIfTI has in common with the other
 * formats. */
#include "io/images.h"
#include "io/images/nifti_header.h"

enum { header_bytes = 348, data_start = 352 };

/* A header set by the meaning of the standard, for files that LORaster would not write. */
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
    unsigned char *bytes = kept(data_start + (int64_t)count, 1);
    memcpy(bytes, header, header_bytes);
    memcpy(bytes + data_start, values, count);
    bytes_write(path, bytes, data_start + count);
}

/* Other programs find the frame in the header: sform and qform are both diag(voxel) and the centre
 * of the first voxel. */
static void test_header(void **state)
{
    size_t count;
    lr_image *image = make_image();
    const char *path = "a.nii";
    assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
    unsigned char *bytes = bytes_read(path, &count);
    struct nifti_header h;
    memcpy(&h, bytes, sizeof(h));
    assert_int_equal(count, data_start + num_voxels * sizeof(float));
    assert_pairs(0, {h.sform_code, 1}, {h.qform_code, 1}, {h.datatype, NIFTI_FLOAT32},
                 {h.xyzt_units & NIFTI_LENGTH_BITS, NIFTI_MILLIMETRE});
    for (int k = 0; k < 3; k++) {
        for (int f = 0; f < 3; f++) assert_true(h.srow[k][f] == (f == k ? (float)image->grid.voxel_mm[k] : 0.0f));
        assert_true(h.srow[k][3] == (float)image->grid.origin_mm[k] && h.qoffset[k] == h.srow[k][3]);
        assert_true(h.pixdim[k + 1] == h.srow[k][k] && h.quatern[k] == 0.0f);
    }
    assert_all(h.pixdim[0] == 1.0f, strstr(h.descrip, lr_version()) != NULL);
}

/* Frames on one grid become volumes; other grids, no frames and too many are refused. */
static void test_frames_written(void **state)
{
    struct test_log log = TEST_LOG(log);
    enum { TOO_MANY = 32768 };
    const lr_image *images[2] = {make_image(), make_image()}, **many = kept(TOO_MANY, sizeof(*many));
    lr_image_frames frames = {.images = images, .count = 2, .step_s = 5.0};
    const char *path = file_in(&files.folder, "frames.nii");
    assert_ints(lr_image_write_frames(path, &frames, &log.log), LR_OK, lr_image_num_frames(path, NULL), 2);
    lr_image moved = *images[1];
    images[1] = &moved;
    moved.grid.origin_mm[2] += 1.0;
    assert_fails(lr_image_write_frames(path, &frames, &log.log), LR_USAGE, &log, "image 2", "another grid");
    moved.grid = images[0]->grid;
    moved.grid.voxel_mm[0] *= 1.1;
    assert_fails(lr_image_write_frames(path, &frames, &log.log), LR_USAGE, &log, "image 2", "another grid");
    frames.count = 0;
    assert_fails(lr_image_write_frames(path, &frames, &log.log), LR_USAGE, &log, "at least one");
    for (int k = 0; k < TOO_MANY; k++) many[k] = images[0];
    frames = (lr_image_frames){.images = many, .count = TOO_MANY};
    assert_fails(lr_image_write_frames(path, &frames, &log.log), LR_BAD_INPUT, &log, "32768 frames");
}

/* Hamilton's product of two quaternions. */
static void multiply(const double p[4], const double q[4], double product[4])
{
    product[0] = p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3];
    product[1] = p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2];
    product[2] = p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1];
    product[3] = p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0];
}

/* Finds the unit quaternion q = (a, b, c, d), a >= 0, for which q v q* is the rotated v. It searches the rotations
 * that map a cube to itself. */
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

/* Writes the image so that axis f of the file is axis[f] of ours, reversed where flipped. */
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

/* The axes in six orders and eight directions give the same image each time. */
static void test_orientations(void **state)
{
    lr_image *image = make_image();
    const char *path = "turned.nii";
    for (int n = 0; n < 96; n++) {
        const bool flipped[3] = {n & 1, n & 2, n & 4};
        write_turned(path, image, axis_orders[n / 8 % 6], flipped, n >= 48);
        lr_image *back = keep(lr_image_read(path, &files.log.log));
        assert_memory_equal(back->grid.size, image->grid.size, sizeof(image->grid.size));
        assert_memory_equal(back->values, image->values, num_voxels * sizeof(float));
        for (int k = 0; k < 3; k++) { /* the header has single precision */
            assert_close(back->grid.voxel_mm[k], image->grid.voxel_mm[k], 3e-7);
            assert_close(back->grid.origin_mm[k], image->grid.origin_mm[k], 1e-6);
        }
    }
}

/* Reverses the bytes of a number. */
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

/* Writes 60 numbers of a type, in the machine's byte order or in the opposite one. */
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
        const int64_t whole = n; /* the low bytes of the number, as tests run on little-endian machines */
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
    const char *path = "numbers.nii";
    const int types[][2] = {{NIFTI_UINT8, 1}, {NIFTI_INT8, 1},   {NIFTI_INT16, 2},   {NIFTI_UINT16, 2},
                            {NIFTI_INT32, 4}, {NIFTI_UINT32, 4}, {NIFTI_FLOAT32, 4}, {NIFTI_FLOAT64, 8},
                            {NIFTI_INT64, 8}, {NIFTI_UINT64, 8}};
    for (int n = 0; n < 20; n++) {
        write_numbers(path, types[n / 2][0], n % 2 == 1 && types[n / 2][1] > 1, types[n / 2][1]);
        lr_image *image = keep(lr_image_read(path, &files.log.log));
        for (int v = 0; v < num_voxels; v++) assert_true(image->values[v] == 0.5f * (float)v - 3.0f);
    }
}

#define AT(field) offsetof(struct nifti_header, field)

/* A good header in which one or two fields are spoilt. */
static void test_refusals(void **state)
{
    static const struct {
        struct {
            size_t at, bytes; /* 2 and 4: integers, 0: single precision */
            double value;
        } fields[2];
        const char *words; /* NULL: small enough to be accepted */
    } cases[] = {{{{AT(srow[0][1]), 0, 2e-4}}, "oblique or sheared"},
                 {{{AT(srow[0][1]), 0, 0.5e-4}}, NULL},
                 {{{AT(srow[1][1]), 0, 0}}, "voxel size of 0 mm along its axis 2"},
                 {{{AT(srow[1][1]), 0, 0}, {AT(srow[0][1]), 0, 1}}, "same direction"},
                 {{{AT(srow[2][2]), 0, NAN}}, "axis 3"},
                 {{{AT(dim[0]), 2, 4}, {AT(dim[4]), 2, 2}}, "2 frames"},
                 {{{AT(dim[2]), 2, 0}}, "size 0 along its axis 2"},
                 {{{AT(datatype), 2, NIFTI_RGB24}}, "RGB24"},
                 {{{AT(vox_offset), 0, 0}}, "start at byte 0"},
                 {{{AT(vox_offset), 0, 0}, {AT(magic), 4, 0x0031696e}}, ".hdr/.img pair"},
                 {{{AT(sizeof_hdr), 4, 540}}, "NIfTI-2"}};
    const float values[num_voxels] = {0.0f};
    const char *path = "bad.nii";
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct nifti_header h = plain_header(NIFTI_FLOAT32, 4);
        for (int n = 0; n < 2 && (n == 0 || cases[k].fields[n].at > 0); n++) {
            const float single = (float)cases[k].fields[n].value;
            const int32_t whole = cases[k].fields[n].bytes > 0 ? (int32_t)cases[k].fields[n].value : 0;
            const size_t bytes = cases[k].fields[n].bytes;
            memcpy((char *)&h + cases[k].fields[n].at, bytes > 0 ? (const void *)&whole : (const void *)&single,
                   bytes > 0 ? bytes : 4);
        }
        write_file(path, &h, values, sizeof(values));
        if (cases[k].words != NULL)
            assert_refused(path, cases[k].words);
        else
            (void)read_good(path);
    }
    text_write(path, "hello");
    assert_refused(path, "not a NIfTI-1 image");
    assert_refused("no/such.nii", "No such file");
}

static void test_bad_values(void **state)
{
    const char *path = "bad.nii";
    const struct nifti_header h = plain_header(NIFTI_FLOAT32, 4);
    float values[num_voxels] = {0.0f};
    values[3 + nx * (2 + ny * 1)] = NAN;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "voxel (3, 2, 1)");
    values[3 + nx * (2 + ny * 1)] = 0.0f;
    values[0] = -INFINITY;
    write_file(path, &h, values, sizeof(values));
    assert_refused(path, "voxel (0, 0, 0)");
}

/* The path of a frame, "frames.nii:2", is read like a file of its own, unless a file has that name. */
static void assert_named_frames(const char *path, const float *values, int num_frames)
{
    const lr_log *log = &files.log.log;
    char name[64];
    lr_grid grid;
    for (int frame = 1; frame <= num_frames; frame++) {
        snprintf(name, sizeof(name), "%s:%d", path, frame);
        assert_ints(lr_image_num_frames(name, NULL), 1, lr_file_kind_of(name), LR_FILE_IMAGE);
        assert_int_equal(lr_grid_read(name, &grid, log), LR_OK);
        lr_image *images[] = {keep(lr_image_read(name, log)), keep(lr_image_read_frame(name, 1, log))};
        for (int k = 0; k < 2; k++) {
            assert_true(lr_grid_same(&grid, &images[k]->grid));
            assert_memory_equal(images[k]->values, values + (frame - 1) * num_voxels, num_voxels * sizeof(float));
        }
        const char *const read = name;
        const lr_file_uses uses = {.read = &read, .num_read = 1, .written = &path, .num_written = 1, .log = log};
        assert_int_equal(lr_files_check(&uses), LR_USAGE); /* the file itself is the input */
    }
    assert_none(lr_image_read_frame(name, 2, log), LR_BAD_INPUT, &files.log, "has no frame 2: it has 1");
    snprintf(name, sizeof(name), "%s:%d", path, num_frames + 1);
    assert_none(lr_image_read(name, log), LR_BAD_INPUT, &files.log, "has no frame 4: it has 3");
    assert_int_equal(lr_grid_read(name, &grid, log), LR_BAD_INPUT);
    snprintf(name, sizeof(name), "%s:0", path);
    assert_none(lr_image_read(name, log), LR_BAD_INPUT, &files.log, "No such file");
    snprintf(name, sizeof(name), "%s:2", path);
    lr_image *other = make_image();
    assert_int_equal(lr_image_write("other.nii", other, log), LR_OK);
    assert_int_equal(rename("other.nii", name), 0);
    assert_same(other, keep(lr_image_read(name, log)), 0);
    assert_int_equal(remove(name), 0);
    assert_int_equal(lr_image_write("single.mhd", other, log), LR_OK);
    assert_same(other, keep(lr_image_read("single.mhd:1", log)), 1e-13);
    assert_none(lr_image_read("single.mhd:2", log), LR_BAD_INPUT, &files.log, "has no frame 2: it has 1");
}

/* Frames of a file of several volumes, plain and compressed, and frames that the file does not have. */
static void test_frames(void **state)
{
    enum { FRAMES = 3 };
    const lr_log *log = &files.log.log;
    float values[FRAMES * num_voxels];
    char words[128];
    struct nifti_header header = plain_header(NIFTI_FLOAT32, 4);
    header.dim[0] = 4;
    header.dim[4] = FRAMES;
    for (int n = 0; n < FRAMES * num_voxels; n++) values[n] = (float)n * 0.5f;
    for (int k = 0; k < 2; k++) {
        const char *path = k == 0 ? "frames.nii" : "frames.nii.gz";
        write_file(path, &header, values, sizeof(values));
        assert_int_equal(lr_image_num_frames(path, NULL), FRAMES);
        for (int frame = 1; frame <= FRAMES; frame++) {
            lr_image *image = keep(lr_image_read_frame(path, frame, log));
            assert_memory_equal(image->values, values + (frame - 1) * num_voxels, num_voxels * sizeof(float));
        }
        assert_none(lr_image_read_frame(path, FRAMES + 1, log), LR_BAD_INPUT, &files.log, "has no frame 4: it has 3");
        assert_null(lr_image_read_frame(path, 0, log));
        assert_int_equal(files.log.status, LR_USAGE);
        snprintf(words, sizeof(words), "holds 3 frames: name one of them, %s:1 to %s:3", path, path);
        assert_none(lr_image_read(path, log), LR_BAD_INPUT, &files.log, words);
        assert_named_frames(path, values, FRAMES);
        if (k > 0) continue; /* the last frame is incomplete */
        assert_int_equal(truncate(path, data_start + (long)sizeof(values) - 4), 0);
        keep(lr_image_read_frame(path, FRAMES - 1, log));
        assert_none(lr_image_read_frame(path, FRAMES, log), LR_BAD_INPUT, &files.log, "is truncated or damaged");
    }
    assert_int_equal(lr_image_num_frames("gone.nii", NULL), 0);
}

/* A compressed file with one bit flipped is refused, or read unchanged where the bit has no meaning (a time stamp,
 * padding): no damaged voxel is read. */
static void test_damage(void **state)
{
    size_t count;
    lr_image *image = make_image();
    const char *path = "a.nii.gz";
    assert_int_equal(lr_image_write(path, image, NULL), LR_OK);
    unsigned char *bytes = bytes_read(path, &count);
    int num_refused = 0;
    for (size_t at = 0; at < count; at++) {
        bytes[at] ^= 0x10;
        bytes_write(path, bytes, count);
        bytes[at] ^= 0x10;
        lr_image *back = lr_image_read(path, NULL);
        num_refused += back == NULL;
        if (back != NULL) assert_same(image, back, 0);
        lr_image_destroy(back);
    }
    assert_true(num_refused > (int)count * 9 / 10);
}

group_main("io image", NULL, NULL, FILES_CASE(test_header), FILES_CASE(test_frames_written),
           FILES_CASE(test_orientations), FILES_CASE(test_number_types), FILES_CASE(test_refusals),
           FILES_CASE(test_bad_values), FILES_CASE(test_frames), FILES_CASE(test_damage))
