// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The solid angle in which a point sees one face (the far face) through another face (the near face). Both faces have
// the same axis `along`. A position (x, y) in the far face's plane is visible through the near face if |across| <=
// half.x height and |along| <= half.y height. All three functions are linear in x and y. height is the height of the
// position along the near face's normal, counted from the point. across and along are the ray's coordinates on the near
// face, multiplied by height. They are computed from the point's offset from the line, without a difference of large
// numbers. The visible part is a range of x between two numbers, and of y between two lines.

// The range of x with a.x + b.x x >= 0 and a.y + b.y x >= 0.
vec2 cut(vec2 a, vec2 b)
{
    vec2 at = -a / b;
    if (b.x * b.y < 0.0) return b.x > 0.0 ? at : at.yx;
    vec2 range = vec2(-1e30, 1e30); // limit for planes that are almost parallel to the ray
    for (int k = 0; k < 2; k++) {
        range.x = b[k] > 0.0 ? max(range.x, at[k]) : range.x;
        range.y = b[k] < 0.0 ? min(range.y, at[k]) : range.y;
        range.y = b[k] == 0.0 && a[k] < 0.0 ? -1e30 : range.y;
    }
    return range;
}

float with_sign_of(float size, float other)
{
    return uintBitsToFloat((floatBitsToUint(size) & 0x7fffffffu) | (floatBitsToUint(other) & 0x80000000u));
}

// A line over a strip, clamped to -half_height .. half_height. It crosses at most one of these bounds. Positions along
// the strip are -1/2 to 1/2. middle: the line's value at 0. rise: its change from one end to the other. Returns its
// mean, and 12 times each of three numbers: its first moment; its second moment minus a twelfth of its mean; its
// variance. `within` is the fraction of the line that is not clamped.
vec4 clamp_flat(float middle, float rise, float half_height)
{
    float steep = abs(rise), inner = half_height + 0.5 * steep - abs(middle);
    float within = clamp(inner / max(steep, 1e-20), 0.0, 1.0);
    float mean = half_height - within * (inner - 0.5 * steep * within);
    float part = rise * within * within, beyond = within * (1.0 - within);
    return vec4(with_sign_of(mean, middle), part * (3.0 - 2.0 * within), with_sign_of(steep * beyond * beyond, -middle),
                part * rise * within * (4.0 - 3.0 * within));
}

// clamp_flat for a line of any rise, which may cross both bounds.
vec4 clamp_steep(float middle, float rise, float half_height)
{
    float steep = abs(rise), part = 1.0 / max(steep, 1e-20);
    float over = clamp((middle + 0.5 * steep - half_height) * part, 0.0, 1.0);
    float under = clamp((0.5 * steep - middle - half_height) * part, 0.0, 1.0);
    float within = 1.0 - over - under;
    float inner = 0.5 * (max(middle - 0.5 * steep, -half_height) + min(middle + 0.5 * steep, half_height));
    float mean = half_height * (over - under) + within * inner;
    float first = rise * (1.0 - over * over * (3.0 - 2.0 * over) - under * under * (3.0 - 2.0 * under));
    float a = over * (1.0 - over), b = under * (1.0 - under);
    float square = half_height * half_height * (over + under) + within * inner * inner;
    float variance = 12.0 * (square - mean * mean) + within * within * within * steep * steep;
    return vec4(mean, first, steep * (b * b - a * a), variance);
}

// The solid angle of a strip between two clamped lines on a face: the integral of height / distance^3, by Taylor's
// expansion of second order about the strip's middle. foot: vector from the point's perpendicular foot on the face's
// plane to the strip's middle. The lines' values are measured from this middle.
float strip_angle(vec2 foot, float height, float width, vec4 upper, vec4 lower)
{
    float tall = upper.x - lower.x, x = foot.x, y = foot.y + 0.5 * (upper.x + lower.x);
    float root = inversesqrt(x * x + y * y + height * height), inverse = root * root;
    vec4 less = upper - lower, both = upper + lower;
    float xx = width * width * (tall + less.z), yy = tall * (tall * tall + 0.5 * both.w);
    float xy = tall * width * both.y, first = x * width * less.y + 0.5 * y * less.w;
    float square = x * (x * xx + y * xy) + y * y * yy;
    float bend = 0.625 * inverse * square - 0.125 * (xx + yy) - 0.25 * first;
    return height * inverse * root * width * max(tall + inverse * bend, 0.0);
}

// The visible part of the far face's plane: x lies in `range`, and y between the two lines line -
// apart and line + apart. A line is stored as its value at x = 0 and its slope.
struct Strips {
    vec2 range, line, apart;
    vec2 foot; // vector from the foot of the point to the face's middle
    float height;
};

// The solid angle of a piece of the face.
float piece_angle(Strips strips, vec2 middle, vec2 half_mm)
{
    float from = max(strips.range.x, middle.x - half_mm.x);
    float to = min(strips.range.y, middle.x + half_mm.x);
    float x = 0.5 * (from + to), width = to - from;
    if (!(width > 0.0)) return 0.0;
    float centre = strips.line.x + x * strips.line.y - middle.y;
    float wide = strips.apart.x + x * strips.apart.y;
    float steep = strips.line.y * width, more = strips.apart.y * width;
    vec4 upper, lower;
    if (abs(steep) + abs(more) <= 2.0 * half_mm.y) {
        upper = clamp_flat(centre + wide, steep + more, half_mm.y);
        lower = clamp_flat(centre - wide, steep - more, half_mm.y);
    } else {
        upper = clamp_steep(centre + wide, steep + more, half_mm.y);
        lower = clamp_steep(centre - wide, steep - more, half_mm.y);
    }
    return upper.x > lower.x ? strip_angle(strips.foot + vec2(x, middle.y), strips.height, width, upper, lower) : 0.0;
}

// Adds up the pieces of a face. Most faces are one piece. A branch for this case would make compilers generate all of
// this code twice.
float pieces_angle(Strips strips, ivec2 pieces, vec2 half_mm)
{
    float sum = 0.0;
    for (int i = 0; i < pieces.x; i++)
        for (int j = 0; j < pieces.y; j++)
            sum += piece_angle(strips, vec2(2 * ivec2(i, j) + 1 - pieces) * half_mm, half_mm);
    return sum;
}

// Solid angle in sr of the far face's visible part. ways: distances along the line to the near face and to the far
// face.
float angle_of(Sight sight, vec2 off, vec2 ways)
{
    Face near = sight.near, far = sight.far;
    float across = dot(near.across_along.xy, off), along = dot(near.across_along.zw, off);
    float above = dot(near.normal, off);
    float near_height = ways.x * near.lean.z + above;
    Strips strips;
    strips.height = ways.y * far.lean.z + dot(far.normal, off);
    if (near_height <= 0.0 || strips.height <= 0.0) return 0.0;
    float through = ways.y * near.lean.z - above, rise = sight.turn.y;
    float u = sight.length_mm * (near.lean.x * above + near.lean.z * across);
    float v = sight.length_mm * (near.lean.y * above + near.lean.z * along);
    float u_per_x = rise * (across - ways.x * near.lean.x) - near_height * sight.turn.x;
    float v_per_x = rise * (along - ways.x * near.lean.y), per_height = 1.0 / near_height;
    strips.range = cut(near.half_mm.x * through + vec2(-u, u), near.half_mm.x * rise + vec2(-u_per_x, u_per_x));
    strips.line = per_height * vec2(v, v_per_x);
    strips.apart = per_height * near.half_mm.y * vec2(through, rise);
    strips.foot = vec2(ways.y * far.lean.x - dot(far.across_along.xy, off), -ways.y * near.lean.y - along);
    return pieces_angle(strips, far.pieces, far.piece_mm);
}

// --- points that differ along the common axis alone ---

// True if all points along v differ only along the common axis and see each face as one piece.
bool has_columns(Sight sight)
{
    Face near = sight.near, far = sight.far;
    vec4 beside = vec4(near.across_along.yz, far.across_along.yz);
    return beside == vec4(0.0) && near.normal.y == 0.0 && far.normal.y == 0.0 && near.pieces == ivec2(1) &&
           far.pieces == ivec2(1);
}

// Terms that all points of a column have in common: x has the same bounds, and the two lines are linear in the point's
// offset from the line along the common axis.
struct Column {
    float width, x, height; // width <= 0: nothing is visible; x: from the foot
    float wide, more;       // half of the distance between the lines in the middle; its change
    vec2 centre, rise;      // value at offset 0, and its change per mm of offset
    float foot;
};

// The column of points at the offset `off` from the line along u: angle_of without the offset along
// v.
Column column_of(Sight sight, float off, vec2 ways)
{
    Face near = sight.near, far = sight.far;
    float above = near.normal.x * off, across = near.across_along.x * off, turn = sight.turn.y;
    float near_height = ways.x * near.lean.z + above;
    float through = ways.y * near.lean.z - above;
    float u = sight.length_mm * (near.lean.x * above + near.lean.z * across);
    float u_per_x = turn * (across - ways.x * near.lean.x) - near_height * sight.turn.x;
    vec2 range = cut(near.half_mm.x * through + vec2(-u, u), near.half_mm.x * turn + vec2(-u_per_x, u_per_x));
    float from = max(range.x, -far.half_mm.x), to = min(range.y, far.half_mm.x);
    float x = 0.5 * (from + to), per_height = 1.0 / near_height;
    float edge = near.half_mm.y * per_height, sweep = turn * per_height;
    Column column;
    column.height = ways.y * far.lean.z + far.normal.x * off;
    column.width = near_height > 0.0 && column.height > 0.0 ? to - from : 0.0;
    column.x = ways.y * far.lean.x - far.across_along.x * off + x;
    column.wide = edge * (through + x * turn);
    column.more = edge * turn * column.width;
    column.centre = vec2(near.lean.y * (sight.length_mm * above * per_height - x * sweep * ways.x),
                         sight.length_mm * near.lean.z * per_height + x * sweep);
    column.rise = sweep * column.width * vec2(-ways.x * near.lean.y, 1.0);
    column.foot = -ways.y * near.lean.y;
    return column;
}

// Solid angle in sr from the column's point at the offset `along`.
float column_angle(Column column, float along, float half_height)
{
    float middle = column.centre.x + along * column.centre.y;
    float steep = column.rise.x + along * column.rise.y;
    vec4 upper, lower;
    if (abs(steep) + abs(column.more) <= 2.0 * half_height) {
        upper = clamp_flat(middle + column.wide, steep + column.more, half_height);
        lower = clamp_flat(middle - column.wide, steep - column.more, half_height);
    } else {
        upper = clamp_steep(middle + column.wide, steep + column.more, half_height);
        lower = clamp_steep(middle - column.wide, steep - column.more, half_height);
    }
    return upper.x > lower.x
               ? strip_angle(vec2(column.x, column.foot - along), column.height, column.width, upper, lower)
               : 0.0;
}
