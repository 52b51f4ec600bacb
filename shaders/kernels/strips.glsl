// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The solid angle of a strip of a plane between two lines that are clamped to an interval (docs/method/listmode.md,
// "Exact elements"). Positions along a strip range from -1/2 to 1/2. A line has the value `middle` at 0, and rises by
// half_rise from there to the end of the strip. Its values are clamped to -limit .. limit.
#ifndef LR_KERNELS_STRIPS
#define LR_KERNELS_STRIPS
#include "kernels/numbers.glsl"

// Statistics of a clamped line over the strip. first is 12 times the first moment. second is 12 times the difference
// between the second moment and a twelfth of the mean. variance is 12 times the variance.
struct clamped_line {
    float mean, first, second, variance;
};

// Clamps a line that crosses at most one of the two limits. This is certain if |half_rise| <= limit. within: the
// fraction of the strip where the line is not clamped.
LR_KERNEL clamped_line clamp_flat(float middle, float half_rise, float limit)
{
    float rise = 2.0f * half_rise, steep = fabsf(rise), inner = limit + 0.5f * steep - fabsf(middle);
    float within = between_0_and_1(inner * per_number(fmaxf(steep, 1e-20f)));
    float mean = limit - within * (inner - 0.5f * steep * within);
    float part = rise * within * within, beyond = within * (1.0f - within);
    clamped_line line = {copysignf(mean, middle), part * (3.0f - 2.0f * within),
                         copysignf(steep * beyond * beyond, -middle), part * rise * within * (4.0f - 3.0f * within)};
    return line;
}

// Clamps a line that may cross both limits.
LR_KERNEL clamped_line clamp_steep(float middle, float half_rise, float limit)
{
    float rise = 2.0f * half_rise, steep = fabsf(rise), part = per_number(fmaxf(steep, 1e-20f));
    float over = between_0_and_1((middle + 0.5f * steep - limit) * part);
    float under = between_0_and_1((0.5f * steep - middle - limit) * part);
    float within = 1.0f - over - under;
    float inner = 0.5f * (fmaxf(middle - 0.5f * steep, -limit) + fminf(middle + 0.5f * steep, limit));
    float a = over * (1.0f - over), b = under * (1.0f - under);
    float square = limit * limit * (over + under) + within * inner * inner;
    float mean = limit * (over - under) + within * inner;
    clamped_line line = {
        mean, rise * (1.0f - over * over * (3.0f - 2.0f * over) - under * under * (3.0f - 2.0f * under)),
        steep * (b * b - a * a), 12.0f * (square - mean * mean) + within * within * within * steep * steep};
    return line;
}

// Statistics of a line that is nearly level: its mean, and 3 times its first moment.
struct level_line {
    float mean, first;
};

// Clamps a line that is nearly level. `within` is 0 or 1 if the line is exactly level; NaN is replaced by 0.
LR_KERNEL level_line clamp_level(float middle, float half_rise, float limit)
{
    float steep = fabsf(half_rise), inner = limit + steep - fabsf(middle);
    float within = between_0_and_1(inner * per_number(steep) * 0.5f);
    float mean = limit - within * (inner - steep * within);
    level_line line = {copysignf(mean, middle), half_rise * within * within * (1.5f - within)};
    return line;
}

// A strip of a plane, from x - width / 2 to x + width / 2, without limits along y. The values of lines are relative to
// y. The origin is the foot of the perpendicular from the point to the plane; height is the length of this
// perpendicular. squares: x^2 + height^2.
struct angle_strip {
    float x, y, width, height, squares;
};

// The solid angle of the area between two lines: the area times the density height / distance^3 at its middle, with all
// second-order terms.
LR_KERNEL float strip_angle(angle_strip strip, clamped_line upper, clamped_line lower)
{
    float tall = upper.mean - lower.mean, x = strip.x, y = strip.y + 0.5f * (upper.mean + lower.mean);
    float root = per_root(strip.squares + y * y), inverse = root * root, width = strip.width;
    float xx = width * width * (tall + upper.second - lower.second);
    float yy = tall * (tall * tall + 0.5f * (upper.variance + lower.variance));
    float xy = tall * width * (upper.first + lower.first);
    float first = x * width * (upper.first - lower.first) + 0.5f * y * (upper.variance - lower.variance);
    float square = x * (x * xx + y * xy) + y * y * yy;
    float bend = 0.625f * inverse * square - 0.125f * (xx + yy) - 0.25f * first;
    return strip.height * inverse * root * width * fmaxf(tall + inverse * bend, 0.0f);
}

// The solid angle of the area between two lines that are nearly level.
LR_KERNEL float level_angle(angle_strip strip, level_line upper, level_line lower)
{
    float tall = upper.mean - lower.mean, x = strip.x, y = strip.y + 0.5f * (upper.mean + lower.mean);
    float y_y = y * y, root = per_root(strip.squares + y_y), inverse = root * root, width = strip.width;
    float xx = width * width, yy = tall * tall, xy = 4.0f * width * (upper.first + lower.first);
    float first = x * width * (upper.first - lower.first);
    float square = x * (x * xx + y * xy) + y_y * yy;
    float bend = tall * (0.625f * inverse * square - 0.125f * (xx + yy)) - first;
    return strip.height * width * inverse * root * fmaxf(tall + inverse * bend, 0.0f);
}
#endif
