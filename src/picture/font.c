/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "picture/font.h"

#include "base/clean_text.h"
#include "base/log.h"

#include <cairo.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Images of cairo have at most 32,767 pixels a side. */
enum { most_room = 32000 };

static const char family[] = "DejaVu Sans", strokes[] = "@cairo:";

/* --- failures --- */

/* Failures are noted here because functions that write text have no log. */
static atomic_bool lacks_font, lacks_memory, has_told;

void lr_font_tell(const lr_log *log)
{
    if (!atomic_load(&lacks_font) && !atomic_load(&lacks_memory)) return;
    if (log == NULL || atomic_exchange(&has_told, true)) return;
    if (atomic_load(&lacks_memory)) {
        lr_warn(log, "no memory for letters: some text is missing in pictures");
    } else {
        lr_warn(log, "no font was found for the text in pictures, so thin strokes stand in for "
                     "letters, and boxes for those beyond ASCII; install DejaVu Sans "
                     "(apt-get install fonts-dejavu-core)");
    }
}

/* --- fonts --- */

/* All options that a system's settings could change are set, so that the pixels are the same everywhere: heights and
 * advances are rounded to whole pixels. */
static cairo_scaled_font_t *open_family(const char *name, const lr_text_style *style)
{
    cairo_matrix_t scale, same;
    const int size_px = style->size_px > 0 ? style->size_px : lr_font_usual;
    cairo_matrix_init_scale(&scale, size_px, size_px);
    cairo_matrix_init_identity(&same);
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_SLIGHT);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_ON);
    cairo_font_face_t *face = cairo_toy_font_face_create(
        name, CAIRO_FONT_SLANT_NORMAL, style->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_scaled_font_t *font = cairo_scaled_font_create(face, &scale, &same, options);
    cairo_font_face_destroy(face);
    cairo_font_options_destroy(options);
    return font;
}

/* False for cairo's built-in stroke font, which does not report missing letters. */
static bool has_letters(cairo_scaled_font_t *font, const char *text)
{
    cairo_glyph_t *glyphs = NULL;
    int count = 0;
    if (cairo_scaled_font_status(font) != CAIRO_STATUS_SUCCESS ||
        cairo_scaled_font_get_type(font) == CAIRO_FONT_TYPE_USER ||
        cairo_scaled_font_text_to_glyphs(font, 0, 0, text, -1, &glyphs, &count, NULL, NULL, NULL) !=
            CAIRO_STATUS_SUCCESS)
        return false;
    bool complete = count > 0;
    for (int n = 0; n < count; n++) complete = complete && glyphs[n].index != 0;
    cairo_glyph_free(glyphs);
    return complete;
}

/* If the family is missing, fontconfig names another one, which may have nothing but symbols; if there is no font at
 * all, cairo uses its strokes by itself. Never NULL; if memory runs out, the font has an error of cairo, and draws
 * nothing. */
static cairo_scaled_font_t *open_font(const lr_text_style *style)
{
    cairo_scaled_font_t *font = open_family(family, style);
    if (!has_letters(font, "09AZaz.-%")) {
        cairo_scaled_font_destroy(font);
        atomic_store(&lacks_font, true);
        font = open_family(strokes, style);
    }
    if (cairo_scaled_font_status(font) != CAIRO_STATUS_SUCCESS) atomic_store(&lacks_memory, true);
    return font;
}

bool lr_font_shows(const char *text)
{
    cairo_scaled_font_t *font = open_font(&(lr_text_style){.size_px = lr_font_usual});
    const bool shows = has_letters(font, text);
    cairo_scaled_font_destroy(font);
    return shows;
}

/* Pixels above and below the base line of letters. */
static void find_extents(cairo_scaled_font_t *font, int *above, int *below)
{
    cairo_font_extents_t extents = {0};
    cairo_scaled_font_extents(font, &extents);
    *above = (int)ceil(extents.ascent);
    *below = (int)ceil(extents.descent);
}

/* Advance of a text: the x of the next letter. */
static int width_of(cairo_scaled_font_t *font, const char *text)
{
    cairo_text_extents_t extents = {0};
    cairo_scaled_font_text_extents(font, text, &extents);
    return (int)ceil(extents.x_advance);
}

/* --- texts --- */

/* Copies a text of any bytes, as far as there is room, and cleans it. */
static void font_clean(const char *text, struct lr_font_text *clean)
{
    size_t length = strlen(text);
    if (length >= sizeof(clean->text)) {
        length = sizeof(clean->text) - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
    }
    memcpy(clean->text, text, length);
    clean->text[length] = '\0';
    lr_clean_text(clean->text);
}

/* Bytes of the longest beginning, of whole characters, that is not wider than `room` when `tail`
 * follows it. A beginning is never wider than a longer one. */
static size_t fitting_bytes(cairo_scaled_font_t *font, const char *text, int room, const char *tail)
{
    struct lr_font_text part;
    const int left = room - width_of(font, tail);
    size_t fits = 0, too_long = strlen(text) + 1;
    while (too_long - fits > 1) {
        size_t middle = fits + (too_long - fits) / 2;
        while (middle > fits && ((unsigned char)text[middle] & 0xc0) == 0x80) middle--;
        if (middle == fits) { /* all bytes between belong to one character */
            middle = fits + lr_character_bytes((const unsigned char *)text + fits);
            if (middle >= too_long) break;
        }
        memcpy(part.text, text, middle);
        part.text[middle] = '\0';
        if (width_of(font, part.text) <= left)
            fits = middle;
        else
            too_long = middle;
    }
    return fits;
}

/* Cuts a text that is wider than `room` and ends it with an ellipsis, or makes it empty. */
static void shorten(cairo_scaled_font_t *font, struct lr_font_text *line, int room)
{
    if (width_of(font, line->text) <= room) return;
    const char *ellipsis = has_letters(font, "\xe2\x80\xa6") ? "\xe2\x80\xa6" : "...";
    line->text[sizeof(line->text) - 1 - strlen(ellipsis)] = '\0';
    lr_clean_text(line->text); /* a character may be cut now */
    size_t length = fitting_bytes(font, line->text, room, ellipsis);
    while (length > 0 && line->text[length - 1] == ' ') length--;
    line->text[length] = '\0';
    if (length > 0 || width_of(font, ellipsis) <= room) strcat(line->text, ellipsis);
}

void lr_font_next_line(const char **text, int width_px, const lr_text_style *style, struct lr_font_text *line)
{
    cairo_scaled_font_t *font = open_font(style);
    struct lr_font_text whole;
    font_clean(*text, &whole);
    size_t length = fitting_bytes(font, whole.text, width_px, "");
    cairo_scaled_font_destroy(font);
    if (whole.text[length] != '\0') {
        size_t blank = length;
        while (blank > 0 && whole.text[blank] != ' ') blank--;
        length = blank > 0 ? blank : length;
    }
    if (length == 0 && whole.text[0] != '\0') length = lr_character_bytes((const unsigned char *)whole.text);
    memcpy(line->text, whole.text, length);
    line->text[length] = '\0';
    *text += length;
    *text += strspn(*text, " ");
}

/* --- drawing --- */

/* Coverage of a line of text by its letters, with a border for letters that extend beyond the line. */
struct mask {
    cairo_surface_t *surface;
    int size[2], border;
};

static void draw_mask(cairo_scaled_font_t *font, const char *text, struct mask *mask)
{
    int above, below;
    find_extents(font, &above, &below);
    mask->border = above / 2 + 1;
    mask->size[0] = width_of(font, text) + 2 * mask->border;
    mask->size[1] = above + below + 2 * mask->border;
    mask->surface = cairo_image_surface_create(CAIRO_FORMAT_A8, mask->size[0], mask->size[1]);
    cairo_t *cairo = cairo_create(mask->surface);
    cairo_set_scaled_font(cairo, font);
    cairo_move_to(cairo, mask->border, mask->border + above);
    cairo_show_text(cairo, text);
    const bool done = cairo_status(cairo) == CAIRO_STATUS_SUCCESS;
    cairo_destroy(cairo);
    cairo_surface_flush(mask->surface);
    if (!done || cairo_surface_status(mask->surface) != CAIRO_STATUS_SUCCESS) {
        atomic_store(&lacks_memory, true);
        mask->size[0] = 0;
    }
}

void lr_picture_text(lr_picture *picture, const int corner[2], const char *text, const lr_text_style *style)
{
    const int axis = style->upwards ? 1 : 0;
    const int64_t rest = (int64_t)picture->size[axis] - corner[axis];
    const int64_t asked = style->most_px > 0 && style->most_px < rest ? style->most_px : rest;
    const int room = (int)(asked < 0 ? 0 : asked < most_room ? asked : most_room);
    struct lr_font_text line;
    struct mask mask;
    font_clean(text, &line);
    cairo_scaled_font_t *font = open_font(style);
    shorten(font, &line, room);

    if (line.text[0] != '\0') {
        draw_mask(font, line.text, &mask);
        const unsigned char *rows = cairo_image_surface_get_data(mask.surface);
        const int stride = cairo_image_surface_get_stride(mask.surface);
        const uint8_t colour[3] = {style->colour.r, style->colour.g, style->colour.b};

        for (int y = 0; y < mask.size[1] && mask.size[0] > 0; y++) {
            for (int x = 0; x < mask.size[0]; x++) {
                const int share = rows[(size_t)y * (size_t)stride + (size_t)x];
                const int along = x - mask.border, down = y - mask.border;
                const int length = mask.size[0] - 2 * mask.border;
                const int64_t at[2] = {(int64_t)corner[0] + (style->upwards ? down : along),
                                       (int64_t)corner[1] + (style->upwards ? length - 1 - along : down)};
                if (share == 0 || at[0] < 0 || at[1] < 0 || at[0] >= picture->size[0] || at[1] >= picture->size[1])
                    continue;
                uint8_t *rgb = picture->rgb + 3 * (at[1] * picture->size[0] + at[0]);
                for (int k = 0; k < 3; k++)
                    rgb[k] = (uint8_t)((rgb[k] * (255 - share) + colour[k] * share + 127) / 255);
            }
        }

        cairo_surface_destroy(mask.surface);
    }
    cairo_scaled_font_destroy(font);
}

int lr_picture_text_width(const char *text, const lr_text_style *style)
{
    struct lr_font_text line;
    font_clean(text, &line);
    cairo_scaled_font_t *font = open_font(style);
    const int width = width_of(font, line.text);
    cairo_scaled_font_destroy(font);
    return width;
}

int lr_picture_text_height(const lr_text_style *style)
{
    cairo_scaled_font_t *font = open_font(style);
    int above, below;
    find_extents(font, &above, &below);
    cairo_scaled_font_destroy(font);
    return above + below;
}

int lr_font_width_within(const char *text, const lr_text_style *style, int most)
{
    const int width = text != NULL ? lr_picture_text_width(text, style) : 0;
    return width < most ? width : most;
}
