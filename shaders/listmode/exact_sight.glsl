// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The solid angle in which a point sees one face through another one, both with the same axis `along`.
// A place (x, y) of the far face's plane is seen through the near face where
//     |across| <= half.x height   and   |along| <= half.y height,
// three functions that are linear in x and y: across and along are the near face's coordinates of the ray
// times the height of the place over the near plane, as the point has it. Here they depend on the
// offset of the point from the line, and nothing large is subtracted. So x lies between two numbers, and y
// between two lines.

// Where a + b x >= 0.
vec2 cut(vec2 range, float a, float b)
{
    float at = -a / b;
    range = b > 0.0 ? vec2(max(range.x, at), range.y) : range;
    range = b < 0.0 ? vec2(range.x, min(range.y, at)) : range;
    return b == 0.0 && a < 0.0 ? vec2(1.0, -1.0) : range;
}

// A line over a strip, kept within -half .. half: its mean, and 12 times its first moment, what its second one
// is above a twelfth of its mean, and its variance. The strip's places go from -1/2 to 1/2; middle: where
// the line is at 0; rise: from one end to the other.
vec4 clamped(float middle, float rise, float half_height)
{
    float steep = abs(rise), part = 1.0 / max(steep, 1e-20);
    float over = clamp((middle + 0.5 * steep - half_height) * part, 0.0, 1.0);
    float under = clamp((0.5 * steep - middle - half_height) * part, 0.0, 1.0);
    float within = 1.0 - over - under;
    float inner = 0.5 * (max(middle - 0.5 * steep, -half_height) +
                         min(middle + 0.5 * steep, half_height));
    float mean = half_height * (over - under) + within * inner;
    float first = rise * (1.0 - over * over * (3.0 - 2.0 * over) - under * under * (3.0 - 2.0 * under));
    float a = over * (1.0 - over), b = under * (1.0 - under);
    float square = half_height * half_height * (over + under) + within * inner * inner;
    float variance = 12.0 * (square - mean * mean) + within * within * within * steep * steep;
    return vec4(mean, first, steep * (b * b - a * a), variance);
}

// Of what lies between two such lines: its area times the density height / distance^3 at its middle, with
// all terms of second order. foot: from the foot of the point to where both lines have their 0, in the
// strip's middle.
float strip_angle(vec2 foot, float height, float width, vec4 upper, vec4 lower)
{
    float tall = upper.x - lower.x, x = foot.x, y = foot.y + 0.5 * (upper.x + lower.x);
    float inverse = 1.0 / (x * x + y * y + height * height);
    vec4 less = upper - lower, both = upper + lower;
    float xx = width * width * (1.0 / 12.0) * (tall + less.z);
    float yy = tall * (tall * tall * (1.0 / 12.0) + both.w * (1.0 / 24.0));
    float xy = tall * width * both.y * (1.0 / 24.0);
    float first = x * width * less.y * (1.0 / 12.0) + y * less.w * (1.0 / 24.0);
    float bend = (7.5 * x * x * inverse - 1.5) * xx + (7.5 * y * y * inverse - 1.5) * yy +
                 15.0 * x * y * inverse * xy - 3.0 * first;
    return height * inverse * sqrt(inverse) * width * max(tall + inverse * bend, 0.0);
}

// Times 2 pi. ways: to the near face, and to the far one.
float angle_of(Sight sight, vec2 off, vec2 ways)
{
    Face near = sight.near, far = sight.far;
    float across = dot(near.across_along.xy, off), along = dot(near.across_along.zw, off);
    float above = dot(near.normal, off);
    float near_height = ways.x * near.lean.z + above;
    float height = ways.y * far.lean.z + dot(far.normal, off);
    if (near_height <= 0.0 || height <= 0.0) {
        return 0.0;
    }
    float through = ways.y * near.lean.z - above, rise = sight.turn.y;
    float u = sight.length_mm * (near.lean.x * above + near.lean.z * across);
    float v = sight.length_mm * (near.lean.y * above + near.lean.z * along);
    float u_per_x = rise * (across - ways.x * near.lean.x) - near_height * sight.turn.x;
    float v_per_x = rise * (along - ways.x * near.lean.y);
    vec2 foot = vec2(ways.y * far.lean.x - dot(far.across_along.xy, off), -ways.y * near.lean.y - along);
    vec2 open = cut(vec2(-1e30, 1e30), near.half_mm.x * through - u, near.half_mm.x * rise - u_per_x);
    open = cut(open, near.half_mm.x * through + u, near.half_mm.x * rise + u_per_x);
    vec2 half_mm = far.half_mm / vec2(far.pieces);
    float sum = 0.0, per_height = 1.0 / near_height;
    for (int i = 0; i < far.pieces.x; i++) {
        float middle = float(2 * i + 1 - far.pieces.x) * half_mm.x;
        float x0 = max(open.x, middle - half_mm.x), x1 = min(open.y, middle + half_mm.x);
        float x = 0.5 * (x0 + x1), width = x1 - x0;
        if (width > 0.0) {
            vec2 line = vec2(v + x * v_per_x, near.half_mm.y * (through + x * rise)) * per_height;
            vec2 steep = vec2(v_per_x, near.half_mm.y * rise) * (per_height * width);
            for (int j = 0; j < far.pieces.y; j++) {
                float y = float(2 * j + 1 - far.pieces.y) * half_mm.y;
                vec4 upper = clamped(line.x + line.y - y, steep.x + steep.y, half_mm.y);
                vec4 lower = clamped(line.x - line.y - y, steep.x - steep.y, half_mm.y);
                if (upper.x > lower.x) {
                    sum += strip_angle(foot + vec2(x, y), height, width, upper, lower);
                }
            }
        }
    }
    return sum;
}
