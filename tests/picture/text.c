/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Text in pictures: every letter, UTF-8, names that are too long or malformed, and pictures that are too small. */
#include "pictures.h"

#include <pthread.h>

enum { border = 20 };

static lr_picture *write(const char *text, const lr_text_style *style, int width)
{
    lr_picture *picture = make_white(width, 3 * border);
    lr_picture_text(picture, (int[2]){border, border}, text, style);
    return picture;
}

/* Number of pixels with text, and the rectangle that contains them. */
static int count_ink(const lr_picture *picture, int low[2], int high[2])
{
    int count = 0;
    low[0] = picture->size[0], low[1] = picture->size[1];
    high[0] = high[1] = -1;
    for (int y = 0; y < picture->size[1]; y++) {
        for (int x = 0; x < picture->size[0]; x++) {
            if (!is_colour(picture, x, y, white)) {
                count++;
                low[0] = x < low[0] ? x : low[0];
                low[1] = y < low[1] ? y : low[1];
                high[0] = x > high[0] ? x : high[0];
                high[1] = y > high[1] ? y : high[1];
            }
        }
    }
    return count;
}

static bool look_alike(const char *a, const char *b)
{
    const lr_text_style style = {.size_px = 0};
    const int before = num_kept();
    lr_picture *one = write(a, &style, 400), *other = write(b, &style, 400);
    const bool same = memcmp(one->rgb, other->rgb, (size_t)one->size[0] * (size_t)one->size[1] * 3) == 0;
    destroy_kept_since(before);
    return same;
}

/* Every printable letter is drawn, and no two look the same. Letters stay within the height of a line and, except
 * for overhanging parts, within their width. Some pixels have the style's full colour, not only the grey of edges. */
static void test_letters(void **state)
{
    const lr_text_style style = {.size_px = 0};
    const int height = lr_picture_text_height(&style);
    for (int letter = ' '; letter <= '~'; letter++) {
        const char text[2] = {(char)letter, '\0'};
        int low[2], high[2];
        lr_picture *picture = write(text, &style, 100);
        const int ink = count_ink(picture, low, high), width = lr_picture_text_width(text, &style);
        assert_all((letter == ' ') == (ink == 0), width >= 3 && width <= 13 + 1);
        if (ink > 0) {
            assert_true(low[0] >= border - 2 && high[0] <= border + width + 1);
            assert_true(low[1] >= border && high[1] < border + height);
        }
        for (int before = ' '; before < letter; before++)
            assert_false(look_alike(text, (const char[2]){(char)before, '\0'}));
    }
    int low[2], high[2], full = 0;
    lr_picture *picture = write("HELT", &(lr_text_style){.colour = {200, 20, 30}}, 100);
    assert_true(count_ink(picture, low, high) > 40);
    for (int n = 0; n < 100 * 3 * border; n++) {
        const uint8_t *rgb = picture->rgb + 3 * n;
        full += rgb[0] == 200 && rgb[1] == 20 && rgb[2] == 30;
        assert_true(rgb[0] >= 200 && rgb[1] >= 20 && rgb[2] >= 30);
    }
    assert_true(full > 10);
}

static void test_sizes(void **state)
{
    const char text[] = "Resolution 4.5 mm";
    const lr_text_style usual = {.size_px = 0}, same = {.size_px = 13}, twice = {.size_px = 26}, bold = {.bold = true};
    const int width = lr_picture_text_width(text, &usual);
    assert_ints(lr_picture_text_width("", &usual), 0, lr_picture_text_width(text, &same), width);
    assert_close(lr_picture_text_width(text, &twice), 2.0 * width, 0.1);
    assert_close(lr_picture_text_height(&twice), 2.0 * lr_picture_text_height(&usual), 0.1);
    assert_true(lr_picture_text_width(text, &bold) > width);
    int low[2], high[2];
    lr_picture *thin = write(text, &usual, 400), *thick = write(text, &bold, 400);
    assert_true(count_ink(thick, low, high) > count_ink(thin, low, high));
}

/* A rotated line has the same pixels as the unrotated line. */
static void test_upwards(void **state)
{
    const char text[] = "emissions per voxel";
    lr_text_style style = {.size_px = 12};
    const int width = lr_picture_text_width(text, &style);
    lr_picture *flat = make_white(width + 2 * border, 3 * border);
    lr_picture *turned = make_white(3 * border, width + 2 * border);
    lr_picture_text(flat, (int[2]){border, border}, text, &style);
    style.upwards = true;
    lr_picture_text(turned, (int[2]){border, border}, text, &style);
    for (int y = 0; y < flat->size[1]; y++) {
        for (int x = 0; x < flat->size[0]; x++) {
            const uint8_t *a = flat->rgb + 3 * (y * flat->size[0] + x);
            assert_memory_equal(a, turned->rgb + 3 * ((flat->size[0] - 1 - x) * turned->size[0] + y), 3);
        }
    }
}

/* Each character beyond ASCII has a letter of its own, and none is the box that stands for missing characters. */
static void test_utf8(void **state)
{
    static const char *const texts[] = {"µ", "Ł", "ź", "Ω", "ж", "°", "±", "⁻⁵", "×", "…", "é"};
    const int count = (int)(sizeof(texts) / sizeof(texts[0]));
    for (int n = 0; n < count; n++) {
        assert_false(look_alike(texts[n], "\xee\x80\x80")); /* U+E000: a private-use character, which the font lacks */
        for (int before = 0; before < n; before++) assert_false(look_alike(texts[n], texts[before]));
    }
    const lr_text_style style = {.size_px = 0};
    assert_true(lr_picture_text_width("µ", &style) < lr_picture_text_width("uu", &style));
}

/* Bytes that are not UTF-8 become '?', control characters are blanks. */
static void test_hostile_bytes(void **state)
{
    static const char *const pairs[][2] = {
        {"a\xb5z", "a?z"},         {"\xc3", "?"},        {"\xc0\xaf", "??"},
        {"\xed\xa0\x80", "???"},   {"\xff\xfe", "??"},   {"\xf4\x90\x80\x80", "????"},
        {"a\033[31mb", "a [31mb"}, {"a\nb\tc", "a b c"}, {"a\x7f\x01z", "a  z"},
        {"a\xc2\x85z", "a  z"},    {"\r\n\a\b", "    "}};
    for (size_t n = 0; n < sizeof(pairs) / sizeof(pairs[0]); n++) assert_true(look_alike(pairs[n][0], pairs[n][1]));
}

/* Returns true if the line is drawn as the first characters of the text followed by an ellipsis. */
static bool is_shortened(const lr_picture *picture, const char *text, const lr_text_style *style)
{
    bool found = false;
    const int before = num_kept();
    for (size_t length = strlen(text); length-- > 0 && !found;) {
        char part[256];
        snprintf(part, sizeof(part), "%.*s…", (int)length, text);
        lr_text_style whole = *style;
        whole.most_px = 0;
        lr_picture *other = make_white(2000, picture->size[1]);
        lr_picture_text(other, (int[2]){border, border}, part, &whole);
        found = true;
        for (int y = 0; y < picture->size[1] && found; y++) {
            found = memcmp(picture->rgb + (size_t)y * (size_t)picture->size[0] * 3, other->rgb + (size_t)y * 2000 * 3,
                           (size_t)picture->size[0] * 3) == 0;
        }
    }
    destroy_kept_since(before);
    return found;
}

/* A text with too little room is cut and ends with an ellipsis, both at the end of the picture and at the limit of a
 * style. It fills most of the room. A text that fits is drawn unchanged. */
static void test_long_names(void **state)
{
    const char name[] = "A scanner whose name goes on until nobody reads it any more, 2024 edition";
    int low[2], high[2];
    for (int room = 20; room < 300; room += 31) {
        const lr_text_style free = {.size_px = 0}, limited = {.most_px = room};
        lr_picture *ends = write(name, &free, border + room), *told = write(name, &limited, 800);
        assert_true(count_ink(ends, low, high) > 0 && is_shortened(ends, name, &free));
        assert_true(count_ink(told, low, high) > 0 && is_shortened(told, name, &limited));
        assert_true(high[0] < border + room && high[0] >= border + room - 26);
    }
    const lr_text_style exact = {.most_px = lr_picture_text_width(name, &(lr_text_style){.size_px = 0})};
    lr_picture *fits = write(name, &exact, 800), *free = write(name, &(lr_text_style){.size_px = 0}, 800);
    assert_memory_equal(fits->rgb, free->rgb, 800 * 3 * border * 3);
}

/* If there is no room even for the ellipsis, nothing is drawn. Nothing is drawn outside of the picture either. */
static void test_no_room(void **state)
{
    int low[2], high[2];
    lr_picture *picture = write("emissions", &(lr_text_style){.most_px = 4}, 200);
    assert_int_equal(count_ink(picture, low, high), 0);
    static const int corners[][2] = {
        {-300, 5}, {300, 5}, {5, -300}, {5, 300}, {INT32_MIN, 0}, {INT32_MAX, INT32_MAX}, {0, INT32_MIN}};
    for (size_t n = 0; n < sizeof(corners) / sizeof(corners[0]); n++) {
        for (int turn = 0; turn < 2; turn++) {
            lr_picture_text(picture, corners[n], "emissions", &(lr_text_style){.upwards = turn});
            assert_int_equal(count_ink(picture, low, high), 0);
        }
    }
}

/* Random bytes of any length, at any size, in any picture, for sanitizers to find errors. */
static void test_random_bytes(void **state)
{
    uint64_t seed = test_seed();
    char text[3000];
    for (int n = 0; n < 300; n++) {
        const int length = (int)(test_random(&seed) * (n % 10 == 0 ? 2999 : 60));
        for (int k = 0; k < length; k++) text[k] = (char)(1 + (int)(test_random(&seed) * 255));
        text[length] = '\0';
        const lr_text_style style = {
            .size_px = (int)(test_random(&seed) * 40), .most_px = (int)(test_random(&seed) * 100), .upwards = n & 1};
        lr_picture *picture = make_white(1 + (int)(test_random(&seed) * 90), 1 + (int)(test_random(&seed) * 90));
        const int corner[2] = {(int)(test_random(&seed) * 120) - 30, (int)(test_random(&seed) * 120) - 30};
        lr_picture_text(picture, corner, text, &style);
        assert_true(lr_picture_text_width(text, &style) >= 0);
    }
}

/* --- threads --- */

static void *write_much(void *picture)
{
    for (int n = 0; n < 40; n++) {
        lr_picture_text(picture, (int[2]){5, 20 * (n % 4)}, "exact, 10⁻⁵ per pair",
                        &(lr_text_style){.size_px = 10 + n % 7, .bold = n & 1});
    }
    return NULL;
}

static void test_threads(void **state)
{
    enum { count = 4 };
    pthread_t threads[count];
    lr_picture *pictures[count + 1];
    for (int n = 0; n <= count; n++) pictures[n] = make_white(200, 90);
    for (int n = 0; n < count; n++) assert_int_equal(pthread_create(&threads[n], NULL, write_much, pictures[n]), 0);
    for (int n = 0; n < count; n++) pthread_join(threads[n], NULL);
    write_much(pictures[count]);
    for (int n = 0; n <= count; n++) assert_memory_equal(pictures[n]->rgb, pictures[count]->rgb, 200 * 90 * 3);
}

test_main("text in pictures", EACH(CASE, test_letters, test_sizes, test_upwards, test_utf8, test_hostile_bytes,
                                   test_long_names, test_no_room, test_random_bytes, test_threads))
