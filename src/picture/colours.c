/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Colour maps. The perceptual one is a path through Oklab (B. Ottosson, "A perceptual color space
 * for image processing", 2020): lightness rises in equal steps while the hue turns from violet over
 * blue and green to yellow. The diverging one falls in lightness from its middle to both ends. */
#include <lr/picture.h>

#include <math.h>

/* The sRGB standard's transfer curve (IEC 61966-2-1), to 8 bits. */
static uint8_t encode(double linear)
{
    if (!(linear > 0.0)) return 0;
    const double value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1.0 / 2.4) - 0.055;
    return value >= 1.0 ? 255 : (uint8_t)lround(255.0 * value);
}

static lr_colour from_oklab(double lightness, double a, double b)
{
    const double l = pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3.0);
    const double m = pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3.0);
    const double s = pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3.0);
    return (lr_colour){
        encode(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
        encode(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
        encode(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s),
    };
}

/* The path's ends and its chroma are chosen so that it stays within sRGB. */
static lr_colour perceptual(double t)
{
    const double lightness = 0.22 + 0.70 * t;
    const double hue = 5.40 - 3.50 * t;
    const double chroma = 0.103 - 0.11 * t + 0.195 * t * t;
    return from_oklab(lightness, chroma * cos(hue), chroma * sin(hue));
}

/* From blue through near white to red-brown; both arms have the same lightness at the same distance
 * from the middle. Chroma stays within sRGB. */
static lr_colour diverging(double t)
{
    const double away = fabs(2.0 * t - 1.0);
    const double hue = t < 0.5 ? 4.45 : 0.785;
    const double chroma = 0.3 * away - 0.175 * away * away;
    return from_oklab(0.98 - 0.53 * away, chroma * cos(hue), chroma * sin(hue));
}

lr_colour lr_colour_of(lr_colour_map map, double t)
{
    if (isnan(t)) return (lr_colour){0, 0, 0};
    const double within = t < 0.0 ? 0.0 : t > 1.0 ? 1.0 : t;
    const uint8_t grey = (uint8_t)lround(255.0 * within);
    switch (map) {
    case LR_COLOURS_GREY: break;
    case LR_COLOURS_INVERSE_GREY:
        return (lr_colour){(uint8_t)(255 - grey), (uint8_t)(255 - grey), (uint8_t)(255 - grey)};
    case LR_COLOURS_PERCEPTUAL: return perceptual(within);
    case LR_COLOURS_DIVERGING: return diverging(within);
    }
    return (lr_colour){grey, grey, grey};
}
