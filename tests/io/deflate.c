/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * gzip output of any length, read back by zlib. */
#include "io/files.h"
#include "io/files/output.h"

#include <zlib.h>

enum { BLOCK = 1 << 17 }; /* the writer's block size, which its interface does not state */

static const char path[] = "./deflated";

static void write_stream(const struct lr_piece *pieces, int num_pieces)
{
    struct lr_output output;
    assert_ok(lr_output_open(&output, path, NULL), lr_output_deflate(&output, pieces, num_pieces));
    assert_int_equal(lr_output_finish(&output), LR_OK);
}

/* Checks that the file is a single gzip stream of these bytes, with nothing after it. */
static void expect_stream(const unsigned char *bytes, size_t count)
{
    unsigned char *found = malloc(count + 1);
    gzFile file = gzopen(path, "rb");
    assert_true(found != NULL && file != NULL);
    assert_int_equal(gzfread(found, 1, count + 1, file), count);
    assert_false(gzdirect(file));
    assert_int_equal(gzclose(file), Z_OK);
    assert_true(count == 0 || memcmp(found, bytes, count) == 0);
    free(found);
}

/* noise: how many bits of each byte are random, 0 to 8. */
static unsigned char *make_bytes(size_t count, int noise)
{
    unsigned char *bytes = malloc(count + 1);
    uint64_t seed = 3;
    assert_non_null(bytes);
    for (size_t k = 0; k < count; k++) bytes[k] = (unsigned char)(test_random(&seed) * (double)(1 << noise));
    return bytes;
}

static void bytes_come_back(void **state)
{
    static const size_t counts[] = {
        0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 64 * BLOCK - 1, 64 * BLOCK, 130 * BLOCK + 17};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (int noise = 0; noise <= 8; noise += 4) {
            unsigned char *bytes = make_bytes(counts[c], noise);
            write_stream(&(struct lr_piece){bytes, counts[c]}, 1);
            expect_stream(bytes, counts[c]);
            free(bytes);
        }
    }
}

static void pieces_follow_each_other(void **state)
{
    enum { COUNT = 3 * BLOCK + 5 };
    static const size_t ends[] = {0, 0, 352, 352, 352 + BLOCK, 2 * BLOCK + 1, COUNT, COUNT};
    enum { PIECES = sizeof(ends) / sizeof(ends[0]) - 1 };
    unsigned char *bytes = make_bytes(COUNT, 5);
    struct lr_piece pieces[PIECES];
    for (int k = 0; k < PIECES; k++) pieces[k] = (struct lr_piece){bytes + ends[k], ends[k + 1] - ends[k]};
    write_stream(pieces, PIECES);
    expect_stream(bytes, COUNT);
    write_stream(NULL, 0);
    expect_stream(NULL, 0);
    free(bytes);
}

/* Blocks refer to data in earlier blocks; otherwise data that repeat in each block would be stored again each time. */
static void blocks_know_those_before(void **state)
{
    enum { PERIOD = 20000, COUNT = 40 * BLOCK };
    unsigned char *bytes = make_bytes(COUNT, 8);
    for (size_t k = PERIOD; k < COUNT; k++) bytes[k] = bytes[k - PERIOD];
    write_stream(&(struct lr_piece){bytes, COUNT}, 1);
    expect_stream(bytes, COUNT);
    print_message("%zu bytes of %d\n", file_size(path), COUNT);
    assert_true(file_size(path) < 40 * PERIOD / 4);
    free(bytes);
}

group_main("io deflate", NULL, NULL, FILES_CASE(bytes_come_back), FILES_CASE(pieces_follow_each_other),
           FILES_CASE(blocks_know_those_before))
