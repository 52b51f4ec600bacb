/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Correspondence images in the false colours of Toth, Magdics, Szirmay-Kalos, "Fast System Matrix Generation on a GPU
 * Cluster", figures 8 and 9. The two indices of a crystal, counted from 1, are shown as red and green. */
#include "base/order.h"
#include "picture/pixel_lor.h"

#include "base/log.h"
#include "model/lors/place.h"
#include "picture/axes.h"
#include "picture/font.h"

#include <lr/picture.h>
#include <math.h>

/* --- LORs of pixels --- */

int64_t lr_pixel_lor(const struct lr_pixel_window *window, int x, int y)
{
    const lr_scanner *scanner = window->lors->scanner;
    const lr_module *primary = &scanner->modules[window->module];
    const lr_pixel *pixel = &window->pixels[(int64_t)y * primary->crystals[0] * window->rays + x];
    const int other = (int)pixel->module;
    if (!(pixel->weight > 0.0f) || other < 0 || other >= scanner->num_modules) return -1;
    const int here = y / window->rays * primary->crystals[0] + x / window->rays;
    const int there = (int)pixel->s * scanner->modules[other].crystals[0] + (int)pixel->r;
    return lr_lors_number(window->lors, scanner->first_crystal[window->module] + here,
                          scanner->first_crystal[other] + there);
}

double lr_row_element(const lr_row *row, int64_t lor)
{
    const int64_t low = lr_first_at_least(row->lor, row->count, lor);
    return low < row->count && row->lor[low] == lor ? row->probability[low] : 0.0;
}

enum { usual_side = 256, least_grid = 4 };
enum { space = 14, patch = 72, swatch = 11, least_bar = 170 };

static const lr_colour black = {0, 0, 0}, white = {255, 255, 255};

/* The value of red or green for an index from 0 to count - 1. */
static uint8_t channel(float index, int count)
{
    const double value = 255.0 * ((double)index + 1.0) / count;
    return !(value > 0.0) ? 0 : value >= 255.0 ? 255 : (uint8_t)lround(value);
}

/* The image without its axes and legend. */
struct image {
    const lr_correspondence_params *params;
    int size[2], zoom; /* size: pixels of the image; zoom: screen pixels along the edge of an image pixel */
    double high;       /* weight that has the last colour */
};

/* --- axes and legend --- */

struct layout {
    struct lr_axes axes; /* the corner of these axes is where the image begins in the picture */
    int size[2];         /* size of the picture */
    int legend[2];       /* the legend's top left corner */
    struct lr_axes key;  /* key of the false colours */
    lr_bar_params bar;   /* bar of the weights */
};

static const lr_text_style plain = {.colour = {0, 0, 0}, .size_px = lr_font_small};
static const char no_pair[] = "no crystal";

/* The axis of a crystal's index. If modules have different numbers of crystals, the axis runs from 0 to 1. */
static struct lr_axis key_axis(const lr_scanner *scanner, int axis)
{
    static const char *const names[2][2] = {{"r", "s"}, {"r / last", "s / last"}};
    const int count = scanner->modules[0].crystals[axis];
    bool alike = true;
    for (int m = 1; m < scanner->num_modules; m++) alike = alike && scanner->modules[m].crystals[axis] == count;
    return alike ? (struct lr_axis){-0.5, count - 0.5, names[0][axis], true}
                 : (struct lr_axis){0.0, 1.0, names[1][axis], false};
}

static struct layout arrange(const struct image *image)
{
    struct layout layout = {.size = {image->size[0] * image->zoom, image->size[1] * image->zoom}};
    if (image->params->labelled) {
        int legend[2];
        const lr_module *module = &image->params->scanner->modules[image->params->module];
        layout.axes = (struct lr_axes){
            .size = {layout.size[0], layout.size[1]},
            .across = lr_face_axis(module, 0),
            .up = lr_face_axis(module, 1),
            .ink = black,
        };

        /* The legend has a line of text, the colours, and a line that explains grey. */
        const int line = lr_picture_text_height(&plain), words = swatch + 4 + lr_picture_text_width(no_pair, &plain);
        if (image->params->view == LR_VIEW_WEIGHTS) {
            const int height = layout.axes.size[1] - line - 8;
            layout.bar = (lr_bar_params){.size = {0, height > least_bar ? height : least_bar},
                                         .high = image->high,
                                         .colours = LR_COLOURS_PERCEPTUAL,
                                         .unit = "probability per line"};
            legend[0] = lr_picture_bar_width(&layout.bar);
            legend[1] = layout.bar.size[1] + line + 8;
        } else {
            layout.key = (struct lr_axes){.size = {patch, patch},
                                          .across = key_axis(image->params->scanner, 0),
                                          .up = key_axis(image->params->scanner, 1),
                                          .ink = black};
            const struct lr_margins margins = lr_axes_margins(&layout.key);
            const int title = lr_picture_text_width("crystal met", &plain);
            legend[0] = lr_larger(title, margins.left + patch + margins.right);
            legend[1] = line + margins.top + patch + margins.bottom + line + 8;
        }
        const struct lr_margins margins = lr_axes_margins(&layout.axes);
        layout.axes.corner[0] = margins.left;
        layout.axes.corner[1] = margins.top;
        layout.legend[0] = margins.left + layout.size[0] + space;
        layout.legend[1] = margins.top;
        layout.size[0] = layout.legend[0] + lr_larger(legend[0], words);
        layout.size[1] = margins.top + lr_larger(layout.size[1] + margins.bottom, legend[1]);
    }
    return layout;
}

lr_picture *lr_picture_correspondence_sized(size_t given_bytes, const lr_correspondence_params *given)
{
    LR_TAKE(lr_correspondence_params, params, given, given_bytes);
    if (params->pixels == NULL || params->scanner == NULL || params->module < 0 ||
        params->module >= params->scanner->num_modules || params->rays <= 0) {
        (void)lr_error(params->log, LR_USAGE, "no correspondence image of module %d with %d rays can be drawn",
                       params->module, params->rays);
        return NULL;
    }
    const lr_scanner *scanner = params->scanner;
    const int *crystals = params->scanner->modules[params->module].crystals;
    struct image image = {.params = params, .size = {params->rays * crystals[0], params->rays * crystals[1]}};
    const int usual_zoom = usual_side / (image.size[0] > image.size[1] ? image.size[0] : image.size[1]);
    image.zoom = params->zoom > 0 ? params->zoom : usual_zoom > 1 ? usual_zoom : 1;
    double largest = 0.0;
    for (int64_t n = 0; n < (int64_t)image.size[0] * image.size[1]; n++)
        largest = fmax(largest, (double)params->pixels[n].weight);
    image.high = params->high > 0.0 ? params->high : largest > 0.0 ? largest : 1.0;

    struct layout layout = arrange(&image);
    lr_picture *picture = lr_picture_create(layout.size, params->log);
    if (picture == NULL) return NULL;
    lr_picture_fill(picture, (int[2]){0, 0}, layout.size, white);
    const int *size = image.size, zoom = image.zoom;
    const int left = layout.axes.corner[0], top = layout.axes.corner[1];
    for (int row = 0; row < size[1]; row++) {
        for (int column = 0; column < size[0]; column++) {
            const lr_pixel *pixel = &params->pixels[(int64_t)row * size[0] + column];
            const int module = (int)pixel->module;
            lr_colour colour = lr_pixel_none;
            if (params->view == LR_VIEW_WEIGHTS) {
                if (pixel->weight > 0.0f)
                    colour = lr_colour_of(LR_COLOURS_PERCEPTUAL, (double)pixel->weight / image.high);
            } else if (pixel->module >= 0.0f && module < scanner->num_modules && !(pixel->r < 0.0f)) {
                const int *met = scanner->modules[module].crystals;
                colour = (lr_colour){channel(pixel->r, met[0]), channel(pixel->s, met[1]), 0};
            }

            lr_picture_fill(picture, (int[2]){left + column * zoom, top + (size[1] - 1 - row) * zoom},
                            (int[2]){zoom, zoom}, colour);
        }
    }

    const int step = params->rays * zoom; /* screen pixels of a crystal */
    for (int k = 0; k < 2 && params->crystal_grid && step >= least_grid; k++) {
        for (int crystal = 1; crystal < crystals[k]; crystal++) {
            const int from[2] = {left + (k == 0 ? crystal * step : 0), top + (k == 1 ? crystal * step : 0)};
            lr_picture_fill(picture, from, (int[2]){k == 0 ? 1 : size[0] * zoom, k == 1 ? 1 : size[1] * zoom},
                            (lr_colour){96, 96, 96});
        }
    }

    if (params->labelled) {
        const int line = lr_picture_text_height(&plain), *corner = layout.legend;
        int below = corner[1] + layout.bar.size[1] + 8;
        lr_axes_draw(picture, &layout.axes);
        if (image.params->view == LR_VIEW_WEIGHTS) {
            lr_picture_bar(picture, corner, &layout.bar);
        } else {
            struct lr_axes *key = &layout.key;
            const struct lr_margins margins = lr_axes_margins(key);
            const double counts[2] = {key->across.high - key->across.low, key->up.high - key->up.low};
            key->corner[0] = corner[0] + margins.left;
            key->corner[1] = corner[1] + line + margins.top;
            below = key->corner[1] + patch + margins.bottom + 8;
            lr_picture_text(picture, corner, "crystal met", &plain);
            for (int y = 0; y < patch; y++) {
                for (int x = 0; x < patch; x++) {
                    const double place[2] = {(x + 0.5) / patch, (patch - y - 0.5) / patch};
                    const double r = key->across.counts ? floor(place[0] * counts[0]) : place[0] * 255.0;
                    const double s = key->up.counts ? floor(place[1] * counts[1]) : place[1] * 255.0;
                    const lr_colour colour = {channel((float)r, key->across.counts ? (int)counts[0] : 256),
                                              channel((float)s, key->up.counts ? (int)counts[1] : 256), 0};
                    lr_picture_fill(picture, (int[2]){key->corner[0] + x, key->corner[1] + y}, (int[2]){1, 1}, colour);
                }
            }
            lr_axes_draw(picture, key);
        }
        /* A grey field and its meaning. */
        lr_picture_fill(picture, (int[2]){corner[0], below + (line - swatch) / 2}, (int[2]){swatch, swatch},
                        lr_pixel_none);
        lr_picture_text(picture, (int[2]){corner[0] + swatch + 4, below}, no_pair, &plain);
    }

    lr_font_tell(params->log);
    return picture;
}
