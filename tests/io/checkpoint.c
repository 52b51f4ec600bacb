/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Checkpoints: the data written are read back; a checkpoint with another key is refused, and the error says what
 * differs; truncated files and files with changed bytes are refused; a full disk leaves the earlier checkpoint as it
 * was. */
#include "io/checkpoints/key.h"
#include "io/files.h"

enum { NUM_IMAGES = 3, NUM_VALUES = 24 };

static const char key[] = "backend native; subsets 2; measurement, contents 0123";

/* The images of a checkpoint. */
static float given[NUM_IMAGES * NUM_VALUES];
static lr_checkpoint checkpoint;

#define PATH "c.h5"

static int set_up(void **state)
{
    for (int k = 0; k < NUM_IMAGES * NUM_VALUES; k++) given[k] = 0.25f * (float)k;
    checkpoint = filled(lr_checkpoint, .grid = {{4, 3, 2}, {1.5, 2.0, 2.5}, {-3.0, 0.0, 7.0}}, .num_images = NUM_IMAGES,
                        .num_values = NUM_VALUES, .images = given, .iterations = 12, .ranks = 3, .frame = 2,
                        .guess_iterations = 1, .local_iterations = 5, .log_likelihood = -1234.5678901234567);
    memcpy(checkpoint.key, key, sizeof(key));
    files_begin(state);
    return lr_checkpoint_write(PATH, &checkpoint, NULL) != LR_OK;
}

/* Compares the data read with the data written, and destroys the data read. */
static void check(lr_checkpoint *back)
{
    const lr_checkpoint *was = &checkpoint;
    assert_string_equal(back->key, key);
    assert_memory_equal(&back->grid, &was->grid, sizeof(back->grid));
    assert_pairs(0, {back->num_images, NUM_IMAGES}, {back->num_values, NUM_VALUES});
    assert_memory_equal(back->images, given, sizeof(given));
    assert_pairs(0, {back->iterations, was->iterations}, {back->ranks, was->ranks}, {back->frame, was->frame},
                 {back->guess_iterations, was->guess_iterations}, {back->local_iterations, was->local_iterations});
    assert_true(back->log_likelihood == was->log_likelihood);
    lr_checkpoint_finish(back);
}

static void what_is_written_comes_back(void **state)
{
    lr_checkpoint back;
    assert_int_equal(lr_checkpoint_read(PATH, key, &back, NULL), LR_OK);
    check(&back);
    assert_int_equal(lr_checkpoint_read(PATH, NULL, &back, NULL), LR_OK);
    lr_checkpoint_finish(&back);
    lr_checkpoint_finish(&back);
}

static void another_key_is_refused(void **state)
{
    static const struct {
        const char *key, *words;
    } others[] = {
        {"backend cpu; subsets 2; measurement, contents 0123",
         "it was begun with backend native, and now it is backend cpu"},
        {"backend native; subsets 20; measurement, contents 0123",
         "it was begun with subsets 2, and now it is subsets 20"},
        {"backend native; subsets 2; measurement, contents 0124", "it was begun with other contents of: measurement"},
        {"backend native; subsets 2; bootstrap replicate 7; measurement, contents 0123",
         "now it is bootstrap replicate 7"}};
    lr_checkpoint back;
    for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
        test_log_init(&files.log);
        assert_fails(lr_checkpoint_read(PATH, others[k].key, &back, &files.log.log), LR_USAGE, &files.log,
                     others[k].words, PATH);
        assert_null(back.images);
    }
}

static void damage_is_refused(void **state)
{
    lr_checkpoint back;
    size_t count;
    unsigned char *bytes = bytes_read(PATH, &count);
    for (size_t kept = 0; kept < count; kept += count / 9 + 1) {
        test_log_init(&files.log);
        bytes_write(PATH, bytes, kept);
        assert_fails(lr_checkpoint_read(PATH, key, &back, &files.log.log), LR_BAD_INPUT, &files.log, PATH);
    }
    given[7] = -1.0f;
    assert_int_equal(lr_checkpoint_write(PATH, &checkpoint, NULL), LR_OK);
    assert_int_equal(lr_checkpoint_read(PATH, key, &back, NULL), LR_BAD_INPUT);
}

/* Reads the file with one bit flipped. Returns true if it is refused; otherwise the data read must equal the data
   written. */
static bool refuses_flip(unsigned char *bytes, size_t count, size_t bit)
{
    lr_checkpoint back;
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    bytes_write(PATH, bytes, count);
    bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    if (lr_checkpoint_read(PATH, NULL, &back, NULL) != LR_OK) return true;
    check(&back);
    return false;
}

static void no_flipped_bit_passes(void **state)
{
    enum { STEP = 419, IN_VALUES = 67 }; /* in bits; another bit of each byte is flipped */
    size_t count, first = 0;
    int refused = 0;
    unsigned char *bytes = bytes_read(PATH, &count);
    for (size_t bit = 0; bit < 8 * count; bit += STEP) refused += refuses_flip(bytes, count, bit);
    print_message("%d of %zu bits are refused\n", refused, 8 * count / STEP);
    while (memcmp(bytes + first, given, sizeof(given)) != 0) first++;
    for (size_t bit = 0; bit < 8 * sizeof(given); bit += IN_VALUES)
        assert_true(refuses_flip(bytes, count, 8 * first + bit));
}

static void a_full_disk_leaves_the_last_one(void **state)
{
    lr_checkpoint back;
    checkpoint.iterations = 13;
    assert_disk_full(1000, lr_checkpoint_write(PATH, &checkpoint, &files.log.log), &files.log, PATH);
    assert_ints(folder_visit(&files.folder, false), 1, lr_checkpoint_read(PATH, key, &back, NULL), LR_OK);
    assert_int_equal(back.iterations, 12);
    lr_checkpoint_finish(&back);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_end)
group_main("io checkpoint", NULL, NULL, TEST(what_is_written_comes_back), TEST(another_key_is_refused),
           TEST(damage_is_refused), TEST(no_flipped_bit_passes), TEST(a_full_disk_leaves_the_last_one))
