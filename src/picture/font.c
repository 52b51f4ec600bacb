/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "picture/font.h"

#include "base/clean_text.h"
#include "base/log.h"

#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_ADVANCES_H
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

enum { most_size_px = 4096 };

/* FreeType moves the upper and lower edges of letters to pixels, and leaves their widths unchanged. */
enum { hinting = FT_LOAD_TARGET_LIGHT };

/* Failures are noted here, because functions that write text have no log. */
static atomic_bool lacks_memory, has_told;

void lr_font_tell(const lr_log *log)
{
    if (!atomic_load(&lacks_memory) || log == NULL || atomic_exchange(&has_told, true)) return;
    lr_warn(log, "no memory for letters: some text is missing in pictures");
}

/* --- fonts --- */

struct font {
    FT_Library library;
    FT_Face face;     /* NULL = no memory; letters then have no width and are not drawn; freed with the library */
    int above, below; /* pixels above and below the base line */
};

static void open_font(struct font *font, const lr_text_style *style)
{
    const struct lr_font_file *file = &lr_font_files[style->bold ? 1 : 0];
    const int size_px = style->size_px <= 0             ? lr_font_usual
                        : style->size_px < most_size_px ? style->size_px
                                                        : most_size_px;
    *font = (struct font){0};
    if (FT_Init_FreeType(&font->library) != 0 ||
        FT_New_Memory_Face(font->library, file->bytes, file->count, 0, &font->face) != 0 ||
        FT_Set_Pixel_Sizes(font->face, 0, (FT_UInt)size_px) != 0) {
        atomic_store(&lacks_memory, true);
        return;
    }
    font->above = (int)(font->face->size->metrics.ascender / 64);
    font->below = (int)(-font->face->size->metrics.descender / 64);
}

/* --- texts --- */

/* Returns the glyph of the text's first character, and moves *text to the next one. The text is clean UTF-8 and not
 * empty. */
static FT_UInt next_glyph(const struct font *font, const char **text)
{
    const unsigned char *bytes = (const unsigned char *)*text;
    const size_t count = lr_character_bytes(bytes);
    FT_ULong character = count == 1 ? bytes[0] : bytes[0] & (0x7fu >> count);
    for (size_t k = 1; k < count; k++) character = character << 6 | (bytes[k] & 0x3f);
    *text += count;
    return font->face != NULL ? FT_Get_Char_Index(font->face, character) : 0;
}

/* Returns the distance from this letter to the next one in pixels. */
static int advance_of(const struct font *font, FT_UInt glyph)
{
    FT_Fixed advance = 0; /* in units of 1/65536 pixel */
    if (font->face != NULL && FT_Get_Advance(font->face, glyph, hinting, &advance) != 0)
        atomic_store(&lacks_memory, true);
    return (int)((advance + 0x8000) / 0x10000);
}

static int width_of(const struct font *font, const char *text)
{
    int width = 0;
    while (*text != '\0') width += advance_of(font, next_glyph(font, &text));
    return width;
}

/* Copies a text and makes the copy clean UTF-8. The text may have any bytes; the copy has a limited length. */
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

/* Returns the number of bytes of the longest beginning of the text that is at most `room` pixels wide. */
static size_t fitting_bytes(const struct font *font, const char *text, int room)
{
    const char *end = text, *next = text;
    int width = 0;
    while (*next != '\0') {
        width += advance_of(font, next_glyph(font, &next));
        if (width > room) break;
        end = next;
    }
    return (size_t)(end - text);
}

/* --- drawing --- */

void lr_picture_text(lr_picture *picture, const int corner[2], const char *text, const lr_text_style *style)
{
    const bool upwards = style->upwards;
    const int axis = upwards ? 1 : 0;
    const int64_t rest = (int64_t)picture->size[axis] - corner[axis];
    const int64_t asked = style->most_px > 0 && style->most_px < rest ? style->most_px : rest;
    struct font font;
    struct lr_font_text clean;
    open_font(&font, style);
    font_clean(text, &clean);

    /* A text that is too wide is cut and ends with an ellipsis. If there is no room for the ellipsis, the text is
     * empty. */
    static const char ellipsis[] = "\xe2\x80\xa6";
    const int room = (int)(asked < 0 ? 0 : asked < INT_MAX ? asked : INT_MAX);
    if (width_of(&font, clean.text) > room) {
        const int left = room - width_of(&font, ellipsis);
        clean.text[sizeof(clean.text) - sizeof(ellipsis)] = '\0';
        lr_clean_text(clean.text); /* a character that was cut in the middle is removed */
        size_t fits = fitting_bytes(&font, clean.text, left);
        while (fits > 0 && clean.text[fits - 1] == ' ') fits--;
        clean.text[fits] = '\0';
        if (left >= 0) strcat(clean.text, ellipsis);
    }

    const uint8_t colour[3] = {style->colour.r, style->colour.g, style->colour.b};
    const int length = width_of(&font, clean.text);
    int begin = 0; /* pixels from the beginning of the text to the letter */
    for (const char *next = clean.text; *next != '\0';) {
        const FT_UInt glyph = next_glyph(&font, &next);
        const bool is_loaded = font.face != NULL && FT_Load_Glyph(font.face, glyph, hinting | FT_LOAD_RENDER) == 0;
        if (!is_loaded) atomic_store(&lacks_memory, true);
        const FT_GlyphSlot slot = is_loaded ? font.face->glyph : NULL;
        for (int y = 0; is_loaded && y < (int)slot->bitmap.rows; y++) {
            for (int x = 0; x < (int)slot->bitmap.width; x++) {
                const int share = slot->bitmap.buffer[y * slot->bitmap.pitch + x]; /* covered part of the pixel, 0 to
                                                                                      255 */
                const int along = begin + slot->bitmap_left + x, down = font.above - slot->bitmap_top + y;
                const int64_t at[2] = {(int64_t)corner[0] + (upwards ? down : along),
                                       (int64_t)corner[1] + (upwards ? length - 1 - along : down)};
                if (share == 0 || at[0] < 0 || at[1] < 0 || at[0] >= picture->size[0] || at[1] >= picture->size[1])
                    continue;
                uint8_t *rgb = picture->rgb + 3 * (at[1] * picture->size[0] + at[0]);
                for (int k = 0; k < 3; k++)
                    rgb[k] = (uint8_t)((rgb[k] * (255 - share) + colour[k] * share + 127) / 255);
            }
        }
        begin += advance_of(&font, glyph);
    }
    FT_Done_FreeType(font.library);
}

int lr_font_lines(lr_picture *picture, const int corner[2], const char *text, const lr_text_style *style, int line_px)
{
    int count = 0;
    for (; text != NULL && *text != '\0'; count++) {
        struct font font;
        struct lr_font_text line;
        open_font(&font, style);
        font_clean(text, &line);
        size_t length = fitting_bytes(&font, line.text, style->most_px);
        FT_Done_FreeType(font.library);
        if (line.text[length] != '\0') {
            size_t blank = length;
            while (blank > 0 && line.text[blank] != ' ') blank--;
            length = blank > 0 ? blank : length;
        }
        /* A line has at least one character, even if this one is wider than the line. */
        if (length == 0 && line.text[0] != '\0') length = lr_character_bytes((const unsigned char *)line.text);
        line.text[length] = '\0';
        if (picture != NULL)
            lr_picture_text(picture, (int[2]){corner[0], corner[1] + count * line_px}, line.text, style);
        text += length;
        text += strspn(text, " ");
    }
    return count;
}

int lr_picture_text_width(const char *text, const lr_text_style *style)
{
    struct font font;
    struct lr_font_text line;
    open_font(&font, style);
    font_clean(text, &line);
    const int width = width_of(&font, line.text);
    FT_Done_FreeType(font.library);
    return width;
}

int lr_picture_text_height(const lr_text_style *style)
{
    struct font font;
    open_font(&font, style);
    FT_Done_FreeType(font.library);
    return font.above + font.below;
}

int lr_font_width_within(const char *text, const lr_text_style *style, int most)
{
    const int width = text != NULL ? lr_picture_text_width(text, style) : 0;
    return width < most ? width : most;
}
