// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The position at which a line from a point of the primary through the sample point meets the secondary's plane
// (docs/method/correspondence.md, "First hit"). Needs correspondence/scene.glsl before it.

// A line from the position (a, b) on the primary, counted from its centre, meets the secondary's plane at the distance
// t |y1 - w| beyond the sample point. t = denominator.w / (denominator.x + a .y + b .z). The position on the secondary,
// counted from its centre, is along.w - t (along.x + a .y + b .z).
struct Sight {
    vec4 denominator;
    vec4 along_u;
    vec4 along_v;
};

// centre, other: vectors from the sample point to the centres of primary and secondary.
Sight make_sight(Module primary, vec3 centre, Module secondary, vec3 other)
{
    vec3 u = primary.u_face_u.xyz;
    vec3 v = primary.v_face_v.xyz;
    vec3 n = secondary.normal.xyz;
    vec3 su = secondary.u_face_u.xyz;
    vec3 sv = secondary.v_face_v.xyz;
    return Sight(vec4(dot(n, centre), dot(n, u), dot(n, v), -dot(n, other)),
                 vec4(dot(su, centre), dot(su, u), dot(su, v), -dot(su, other)),
                 vec4(dot(sv, centre), dot(sv, u), dot(sv, v), -dot(sv, other)));
}

float along(vec4 row, vec2 at)
{
    return row.x + row.y * at.x + row.z * at.y;
}

// The factor t of the line through `at`; negative if the line does not meet the plane beyond the point.
float sight_distance(Sight sight, vec2 at)
{
    float denominator = along(sight.denominator, at);
    return denominator > 0.0 ? sight.denominator.w / denominator : -1.0;
}

vec2 sight_hit(Sight sight, vec2 at, float t)
{
    return vec2(sight.along_u.w - t * along(sight.along_u, at), sight.along_v.w - t * along(sight.along_v, at));
}

#ifdef HIDING
// The Sight of a module whose face may point away from the point. `draw` is the secondary with its flags. The sign of
// the denominator is chosen so that it is positive for lines that meet the module's plane. For a module between the
// point and the primary, t is negative.
Sight make_hiding_sight(Module primary, vec3 centre, Module secondary, vec3 other, uint draw)
{
    Sight sight = make_sight(primary, centre, secondary, other);
    bool behind = sight.denominator.w < 0.0;
    bool before = (draw & LR_BEFORE_PRIMARY) != 0u;
    sight.denominator *= behind != before ? -1.0 : 1.0;
    return sight;
}

// Returns a positive number if a line reaches the plane of a module before it reaches the primary's plane.
float sight_before(Sight sight, vec2 at)
{
    return along(sight.denominator, at) + sight.denominator.w;
}
#endif
