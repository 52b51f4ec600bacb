/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "gl_test.h"

#include "base/mem.h"
#include "batches.h"
#include "gl/context_private.h"
#include "gl/transfer.h"

static const struct {
    GLenum format;
    int texel_bytes;
} formats[] = {{GL_R8, 1},
               {GL_RG8, 2},
               {GL_RGBA8, 4},
               {GL_R16UI, 2},
               {GL_RG16UI, 4},
               {GL_RGBA16UI, 8},
               {GL_R16F, 2},
               {GL_RG16F, 4},
               {GL_RGBA16F, 8},
               {GL_R32F, 4},
               {GL_RG32F, 8},
               {GL_RGBA32F, 16},
               {GL_R32UI, 4},
               {GL_RG32UI, 8},
               {GL_RGBA32UI, 16},
               {GL_R32I, 4},
               {GL_RG32I, 8},
               {GL_RGBA32I, 16},
               {GL_DEPTH_COMPONENT32F, 4}};

/* Random bytes that every format stores unchanged: no half or float NaN, and depth within 0 .. 1. */
static void draw_bytes(uint64_t *seed, unsigned char *bytes, int64_t count)
{
    for (int64_t k = 0; k < count; k++) bytes[k] = (unsigned char)(test_random(seed) * 0x3f);
}

/* A new buffer of the same size gets the memory of a destroyed one again, and still begins with zeros. */
static void storage_comes_again(void **state)
{
    const int64_t bytes = 1 << 20;
    const struct gl_buffer_params params = {.label = "used again", .size_bytes = bytes};
    unsigned char *sent = kept(bytes, 1), *back = kept(bytes, 1);
    memset(sent, 0x5a, (size_t)bytes);
    struct gl_buffer *buffer = gl_buffer_create(test->ctx, &params);
    const GLuint name = buffer->name;
    assert_ok(gl_buffer_upload(buffer, 0, bytes, sent));
    gl_buffer_destroy(buffer);
    assert_int_not_equal(make_buffer("larger", 2 * bytes, NULL)->name, name);
    buffer = make_buffer("used again", bytes, NULL);
    assert_int_equal(buffer->name, name);
    assert_ok(gl_buffer_read(buffer, 0, bytes, back));
    memset(sent, 0, (size_t)bytes);
    assert_memory_equal(sent, back, (size_t)bytes);
}

/* There are more buffers than the pool holds: all of them work, and none shares memory with another one. */
static void many_buffers_come_and_go(void **state)
{
    enum { COUNT = GL_POOL_MOST + 24 };
    for (int round = 0; round < 3; round++) {
        struct gl_buffer *buffers[COUNT];
        for (uint32_t k = 0; k < COUNT; k++) {
            buffers[k] =
                gl_buffer_create(test->ctx, &(struct gl_buffer_params){.label = "one of many", .size_bytes = 8192});
            gl_buffer_clear(buffers[k], k + 1);
        }
        for (uint32_t k = 0; k < COUNT; k++) {
            uint32_t word;
            assert_ok(gl_buffer_read(buffers[k], 8188, 4, &word));
            assert_int_equal(word, k + 1);
            gl_buffer_destroy(buffers[k]);
        }
    }
}

/* Data uploaded right after creation stay: no later clear overwrites them. */
static void uploads_follow_clears(void **state)
{
    const int sides[] = {16, 128, 129, 512, 2048};
    for (int n = 0; n < 5; n++) {
        const int64_t count = (int64_t)sides[n] * sides[n];
        uint32_t *sent = kept(count, 4), *back = kept(count, 4);
        for (int64_t k = 0; k < count; k++) sent[k] = (uint32_t)k + 1;
        struct gl_buffer *buffer = make_buffer("cleared", 8 * count, NULL);
        assert_ok(gl_buffer_upload(buffer, 0, 4 * count, sent), gl_buffer_read(buffer, 0, 4 * count, back));
        assert_memory_equal(sent, back, (size_t)count * 4);
        struct gl_texture *texture = make_texture("cleared", GL_R32UI, sides[n], sides[n] + 1);
        const struct gl_box box = {.width = sides[n], .height = sides[n]};
        assert_ok(gl_texture_upload(texture, &box, sent), gl_texture_read(texture, &box, back));
        assert_memory_equal(sent, back, (size_t)count * 4);
        destroy_kept(NULL);
    }
}

static void assert_round_trip(GLenum target, int form, uint64_t *seed)
{
    const struct gl_texture_params params =
        filled(struct gl_texture_params, .label = "round trip", .target = target, .format = formats[form].format,
               .width = 7, .height = 5, .depth = target == GL_TEXTURE_2D ? 1 : 3);
    struct gl_texture *texture = keep_object(gl_texture_create(test->ctx, &params), gl_test_destroy_texture);
    const int64_t bytes = gl_texture_bytes(texture);
    assert_int_equal(bytes, (int64_t)7 * 5 * texture->size[2] * formats[form].texel_bytes);
    unsigned char *sent = kept(bytes, 1), *back = kept(bytes, 1);
    assert_ok(gl_texture_read(texture, NULL, back));
    for (int64_t k = 0; k < bytes; k++) assert_int_equal(back[k], 0);
    draw_bytes(seed, sent, bytes);
    assert_ok(gl_texture_upload(texture, NULL, sent), gl_texture_read(texture, NULL, back));
    assert_memory_equal(sent, back, (size_t)bytes);
}

static void textures_give_back_what_they_got(void **state)
{
    uint64_t seed = test_seed();
    for (int form = 0; form < (int)(length_of(formats)); form++) {
        assert_round_trip(GL_TEXTURE_2D, form, &seed);
        assert_round_trip(GL_TEXTURE_2D_ARRAY, form, &seed);
        if (formats[form].format != GL_DEPTH_COMPONENT32F) assert_round_trip(GL_TEXTURE_3D, form, &seed);
    }
    assert_string_equal(test->log.error, "");
}

static void boxes_reach_their_texels_only(void **state)
{
    const struct gl_texture_params params = {
        .label = "boxes", .target = GL_TEXTURE_2D_ARRAY, .format = GL_R32UI, .width = 6, .height = 4, .depth = 3};
    struct gl_texture *texture = keep_object(gl_texture_create(test->ctx, &params), gl_test_destroy_texture);
    const struct gl_box box = {2, 1, 1, 3, 2, 2};
    const uint32_t sent[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    uint32_t all[72], part[12];
    assert_ok(gl_texture_upload(texture, &box, sent), gl_texture_read(texture, NULL, all));
    for (int k = 0; k < 72; k++) {
        const int x = k % 6 - 2, y = k / 6 % 4 - 1, z = k / 24 - 1;
        const bool inside = x >= 0 && x < 3 && y >= 0 && y < 2 && z >= 0 && z < 2;
        assert_int_equal(all[k], inside ? sent[x + 3 * (y + 2 * z)] : 0);
    }
    assert_ok(gl_texture_read(texture, &box, part));
    assert_memory_equal(part, sent, sizeof(sent));
    const struct gl_box outside = {4, 0, 0, 3, 1, 1}, behind = {0, 0, 3, 1, 1, 0};
    assert_int_equal(gl_texture_read(texture, &outside, part), LR_USAGE);
    assert_int_equal(gl_texture_upload(texture, &behind, sent), LR_USAGE);
    assert_says(test->log.error, "boxes: the box of 1 x 1 x 1 texels at 0, 0, 3");
    const uint32_t seven = 7;
    gl_texture_clear(texture, &seven);
    assert_ok(gl_texture_read(texture, NULL, all));
    assert_true(all[0] == 7 && all[71] == 7);
}

static void impossible_textures_are_refused(void **state)
{
    struct gl_texture_params params = {.label = "flat", .format = GL_R32F, .width = 0, .height = 1};
    assert_null(gl_texture_create(test->ctx, &params));
    assert_int_equal(test->log.status, LR_USAGE);
    params.width = 1 << 20;
    assert_null(gl_texture_create(test->ctx, &params));
    assert_error(&test->log, LR_FAILED, "flat: a texture of 1048576 x 1 x 1");
    params.width = 1;
    params.format = GL_RGB9_E5;
    assert_null(gl_texture_create(test->ctx, &params));
    assert_int_equal(test->log.status, LR_USAGE);
    assert_false(test->ctx->saw_error);
}

static void buffers_give_back_what_they_got(void **state)
{
    struct gl_buffer *buffer = make_buffer("seven bytes", 7, NULL);
    unsigned char back[7];
    assert_ok(gl_buffer_read(buffer, 0, 7, back));
    assert_memory_equal(back, "\0\0\0\0\0\0\0", 7);
    assert_ok(gl_buffer_upload(buffer, 2, 3, "abc"), gl_buffer_read(buffer, 0, 7, back));
    assert_memory_equal(back, "\0\0abc\0\0", 7);
    assert_int_equal(gl_buffer_upload(buffer, 5, 3, "abc"), LR_USAGE);
    assert_says(test->log.error, "seven bytes: 3 bytes at 5 are not inside its 7");
    assert_int_equal(gl_buffer_read(buffer, INT64_MAX, 1, back), LR_USAGE);
    gl_buffer_clear(buffer, 0x01010101);
    assert_ok(gl_buffer_read(buffer, 0, 7, back));
    assert_memory_equal(back, "\1\1\1\1\1\1\1", 7);
    make_buffer("empty", 0, NULL);
}

/* Begins with a context that treats the device as a large one, on which a shader fills large buffers. */
static int begin_as_on_hardware(void **state)
{
    setenv("LR_TEST_BATCHES", "large", 1);
    const int result = gl_test_begin(state);
    unsetenv("LR_TEST_BATCHES");
    return result;
}

enum { FILLED_WORDS = 100003 };

/* Fills a range with a pattern of one or two words, and checks that no word beside it changes. */
static void check_fill(struct gl_buffer *buffer, const int64_t words[2], int count)
{
    static uint32_t back[FILLED_WORDS];
    const uint32_t pair[2] = {0xabcd0001u, 0x1234fffeu};
    const struct gl_buffer_range range = {.to = buffer, .to_offset = 4 * words[0], .bytes = 4 * (words[1] - words[0])};
    gl_buffer_clear(buffer, 7);
    assert_ok(gl_buffer_fill_range(&range, pair, count), gl_buffer_read(buffer, 0, sizeof(back), back));
    for (int64_t k = 0; k < FILLED_WORDS; k++) {
        const bool is_inside = k >= words[0] && k < words[1];
        assert_int_equal(back[k], is_inside ? pair[(k - words[0]) % count] : 7);
    }
}

static void fills_reach_their_words_only(void **state)
{
    struct gl_buffer *buffer = make_buffer("words", 4 * FILLED_WORDS, NULL);
    const int64_t ranges[][2] = {{0, FILLED_WORDS}, {1, FILLED_WORDS}, {6, 90001}, {77, 50000}};
    for (int k = 0; k < 4; k++) check_fill(buffer, ranges[k], 1);
    check_fill(buffer, (const int64_t[]){6, 90000}, 2);
    check_fill(buffer, (const int64_t[]){0, 100002}, 2);
}

/* Reads more than a staging buffer holds, from an unaligned offset. */
static void long_reads_are_whole(void **state)
{
    const int64_t count = (int64_t)9 << 20, skipped = 12345;
    uint32_t *sent = kept(count, 4), *back = kept(count, 4);
    for (int64_t k = 0; k < count; k++) sent[k] = (uint32_t)k * 2654435761u;
    assert_ok(gl_buffer_read(make_buffer("long", count * 4, sent), skipped * 4, (count - skipped) * 4, back));
    assert_memory_equal(sent + skipped, back, (size_t)(count - skipped) * 4);
    assert_int_equal(back[count - skipped], 0);
}

static void no_memory_is_a_sentence_with_the_size(void **state)
{
    const struct gl_buffer_params params = {.label = "huge", .size_bytes = (int64_t)1 << 46};
    assert_null(gl_buffer_create(test->ctx, &params));
    assert_error(&test->log, LR_FAILED, "huge: 64.0 TiB do not fit into the ");
    const struct gl_texture_params cube = {.label = "cube",
                                           .target = GL_TEXTURE_3D,
                                           .format = GL_RGBA32F,
                                           .width = gl_context_limits(test->ctx)->max_3d_texture_size,
                                           .height = gl_context_limits(test->ctx)->max_3d_texture_size,
                                           .depth = gl_context_limits(test->ctx)->max_3d_texture_size};
    test->log.error[0] = '\0';
    assert_null(gl_texture_create(test->ctx, &cube));
    assert_memory_equal(test->log.error, "cube: ", 6);
    assert_int_equal(glGetError(), GL_NO_ERROR);
}

/* The driver refuses a size below the machine's memory: buffers in Mesa are limited to 4 GiB. */
static void a_refusal_of_the_driver_is_a_sentence_with_the_size(void **state)
{
    const int64_t bytes = ((int64_t)4 << 30) + 4096;
    if (!gl_context_limits(test->ctx)->software || lr_physical_memory() < bytes) {
        print_message("skipped: this driver or machine has no such limit to test\n");
        skip();
    }
    assert_null(gl_buffer_create(test->ctx, &(struct gl_buffer_params){.label = "big", .size_bytes = bytes}));
    assert_error(&test->log, LR_FAILED, "big: no memory for 4.0 GiB on ");
    assert_int_equal(glGetError(), GL_NO_ERROR);
}

static void everything_has_its_label(void **state)
{
    struct gl_target *target = make_target(&(struct gl_target_params){
        .label = "picture", .width = 4, .height = 4, .colour_formats = {GL_R32F}, .depth = true});
    struct gl_buffer *buffer = make_buffer("store", 4, NULL);
    const struct {
        GLenum kind;
        GLuint name;
        const char *label;
    } wanted[] = {{GL_FRAMEBUFFER, target->name, "picture"},
                  {GL_TEXTURE, target->colours[0]->name, "picture colour 0"},
                  {GL_TEXTURE, target->depth->name, "picture depth"},
                  {GL_BUFFER, buffer->name, "store"}};
    for (int k = 0; k < 4; k++) {
        char label[64] = "";
        glGetObjectLabel(wanted[k].kind, wanted[k].name, sizeof(label), NULL, label);
        assert_string_equal(label, wanted[k].label);
    }
}

static void targets_clear_each_kind_of_colour(void **state)
{
    const struct gl_target_params params =
        filled(struct gl_target_params, .label = "mixed", .width = 4, .height = 3, .depth = true,
               .colour_formats = {GL_RG32F, GL_R32UI, GL_RGBA32I, GL_RGBA16UI});
    struct gl_target *target = make_target(&params);
    assert_int_equal(target->num_colours, 4);
    const struct gl_clear clear = {
        .colours = {{.f = {0.5f, -2}}, {.u = {4000000000u}}, {.i = {-1, 2, -3, 4}}, {.u = {1, 2, 3, 65535}}},
        .depth = 0.25f,
        .rect = {1, 1, 2, 1}};
    gl_target_clear(target, &clear);
    float pairs[12][2], depth[12];
    uint32_t numbers[12];
    int32_t fours[12][4];
    uint16_t shorts[12][4];
    assert_ok(gl_texture_read(target->colours[0], NULL, pairs));
    assert_ok(gl_texture_read(target->colours[1], NULL, numbers));
    assert_ok(gl_texture_read(target->colours[2], NULL, fours));
    assert_ok(gl_texture_read(target->colours[3], NULL, shorts), gl_texture_read(target->depth, NULL, depth));
    for (int k = 0; k < 12; k++) {
        const bool in = k / 4 == 1 && (k % 4 == 1 || k % 4 == 2);
        assert_true(pairs[k][1] == (in ? -2.0f : 0.0f) && depth[k] == (in ? 0.25f : 1.0f));
        assert_true(numbers[k] == (in ? 4000000000u : 0u) && fours[k][2] == (in ? -3 : 0));
        assert_int_equal(shorts[k][3], in ? 65535 : 0);
    }
    destroy_kept(NULL);
    assert_string_equal(test->log.error, "");
}

static void borrowed_layers_are_drawn_alone(void **state)
{
    const struct gl_texture_params layers = {
        .label = "layers", .target = GL_TEXTURE_2D_ARRAY, .format = GL_R32F, .width = 2, .height = 2, .depth = 3};
    struct gl_texture *texture = keep_object(gl_texture_create(test->ctx, &layers), gl_test_destroy_texture);
    struct gl_target_params params = {.label = "one layer", .colours = {texture}, .layer = 1};
    struct gl_target *target = keep_object(gl_target_create(test->ctx, &params), gl_test_destroy_target);
    gl_target_clear(target, &(struct gl_clear){.colours[0].f = {3}});
    float values[12];
    assert_ok(gl_texture_read(texture, NULL, values));
    for (int k = 0; k < 12; k++) assert_true(values[k] == (k / 4 == 1 ? 3.0f : 0.0f));
    params.layer = -1;
    params.depth = true;
    target = keep_object(gl_target_create(test->ctx, &params), gl_test_destroy_target);
    assert_int_equal(target->depth->size[2], 3);
    gl_target_clear(target, &(struct gl_clear){.colours[0].f = {5}});
    assert_ok(gl_texture_read(texture, NULL, values));
    assert_true(values[0] == 5.0f && values[11] == 5.0f);
    params.layer = 3;
    params.depth = false;
    assert_null(gl_target_create(test->ctx, &params));
    assert_int_equal(test->log.status, LR_USAGE);
}

/* --- loans --- */

struct test_loan {
    struct gl_loan loan;
    int times_ended;
};

static void count_end(struct gl_loan *loan)
{
    ((struct test_loan *)loan)->times_ended++;
}

static void assert_refused(lr_status status)
{
    assert_int_equal(status, LR_USAGE);
    assert_says(test->log.error, "lent is out on a loan");
    test->log.error[0] = '\0';
}

static void what_is_out_on_a_loan_is_refused(void **state)
{
    struct test_loan loan = {.loan = {.is_out = true, .end = count_end}};
    uint32_t word = 7;
    struct gl_texture *texture = make_texture("lent", GL_R32UI, 1, 1);
    struct gl_buffer *buffer = make_buffer("lent", 4, &word);
    assert_ok(gl_texture_upload(texture, NULL, &word));
    spoilt(texture->loan = buffer->loan = &loan.loan, assert_refused(gl_texture_upload(texture, NULL, &word)));
    assert_refused(gl_texture_read(texture, NULL, &word));
    assert_refused(gl_buffer_upload(buffer, 0, 4, &word));
    assert_refused(gl_buffer_read(buffer, 0, 4, &word));
    gl_texture_clear(texture, NULL);
    gl_buffer_clear(buffer, 0);
    struct gl_pass pass = {.label = "a pass"};
    spoilt(pass.textures[0] = texture, assert_refused(gl_pass_run(test->ctx, &pass)));
    pass.textures[0] = NULL;
    spoilt(pass.images[0].texture = texture, assert_refused(gl_pass_run(test->ctx, &pass)));
    pass.images[0].texture = NULL;
    spoilt(pass.buffers[0].buffer = buffer, assert_refused(gl_pass_run(test->ctx, &pass)));
    loan.loan.is_out = false;
    word = 0;
    assert_ok(gl_buffer_read(buffer, 0, 4, &word));
    assert_int_equal(word, 7); /* clearing was refused while the buffer was lent */
    assert_ok(gl_texture_read(texture, NULL, &word));
    assert_int_equal(word, 7);
    destroy_kept(NULL);
    assert_int_equal(loan.times_ended, 2);
}

/* Two readbacks arrive at their own offsets, even though the buffer changes afterwards; data that do not fit are
 * refused. */
static void readbacks_have_what_was_sent(void **state)
{
    enum { WORDS = 40000 };
    uint64_t seed = 5;
    unsigned char *bytes = kept(WORDS, 4);
    draw_bytes(&seed, bytes, 4 * WORDS);
    struct gl_buffer *buffer = make_buffer("sent", 4 * WORDS, bytes);
    struct gl_readback readbacks[2] = {{.ctx = test->ctx, .label = "one"}, {.ctx = test->ctx, .label = "other"}};
    const struct gl_buffer_range ranges[2] = {
        {.from = buffer, .from_offset = 400, .to_offset = 256, .bytes = 4 * WORDS - 400},
        {.from = buffer, .bytes = 4 * WORDS}};
    for (int k = 0; k < 2; k++) {
        const int64_t bytes_there = ranges[k].to_offset + ranges[k].bytes;
        assert_ok(gl_readback_reserve(&readbacks[k], 16));
        assert_int_equal(gl_readback_copy(&readbacks[k], &ranges[k]), LR_USAGE);
        assert_ok(gl_readback_reserve(&readbacks[k], bytes_there), gl_readback_copy(&readbacks[k], &ranges[k]));
        gl_readback_send(&readbacks[k]);
        gl_buffer_clear(buffer, (uint32_t)k);
    }
    for (int k = 0; k < 2; k++) assert_ok(gl_readback_wait(&readbacks[k]));
    assert_memory_equal(readbacks[0].mapped + 256, bytes + 400, 4 * WORDS - 400);
    for (int n = 0; n < 4 * WORDS; n++) assert_int_equal(readbacks[1].mapped[n], 0);
    assert_ok(gl_readback_wait(&readbacks[1])); /* nothing was sent, so there is nothing to wait for */
    gl_readback_finish(&readbacks[0]);
    gl_readback_finish(&readbacks[1]);
}

/* An error of earlier OpenGL calls is reported when an object is made: it is neither attributed to the object nor
   lost. */
static void work_before_a_new_object_is_checked(void **state)
{
    uint32_t word = 7;
    const struct gl_buffer_params four = {.label = "four", .size_bytes = 4, .data = &word};
    const struct gl_texture_params texel = {.label = "texel", .format = GL_R32F, .width = 1, .height = 1};
    glDebugMessageControl(GL_DONT_CARE, GL_DONT_CARE, GL_DONT_CARE, 0, NULL, GL_FALSE);
    for (int k = 0; k < 3; k++) {
        struct gl_buffer *buffer = non_null(gl_buffer_create(test->ctx, &four));
        glDisable(0xFFFF);
        test->log.status = LR_OK;
        if (k == 0)
            assert_null(gl_buffer_create(test->ctx, &four));
        else if (k == 1)
            assert_null(gl_texture_create(test->ctx, &texel));
        else /* which makes the buffer for reading */
            assert_int_equal(gl_buffer_read(buffer, 0, 4, &word), LR_FAILED);
        assert_error(&test->log, LR_FAILED, "the work before ", "GL_INVALID_ENUM");
        gl_buffer_destroy(buffer);
    }
}

test_main("gl_resource",
          EACH(gl_test_case, textures_give_back_what_they_got, uploads_follow_clears, storage_comes_again,
               many_buffers_come_and_go, boxes_reach_their_texels_only, impossible_textures_are_refused,
               buffers_give_back_what_they_got, fills_reach_their_words_only),
          cmocka_unit_test_setup_teardown(fills_reach_their_words_only, begin_as_on_hardware, gl_test_end),
          EACH(gl_test_case, long_reads_are_whole, readbacks_have_what_was_sent, no_memory_is_a_sentence_with_the_size,
               a_refusal_of_the_driver_is_a_sentence_with_the_size, work_before_a_new_object_is_checked,
               everything_has_its_label, targets_clear_each_kind_of_colour, borrowed_layers_are_drawn_alone,
               what_is_out_on_a_loan_is_refused))
