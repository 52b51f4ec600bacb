// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The position where a line from a point of the primary, through the sample point, hits the secondary's plane
// (docs/method/correspondence.md, "First hit"). Needs correspondence/scene.glsl before it.

// A line begins at position (a, b) on the primary, relative to the primary's centre, and goes through the sample point
// to the secondary's plane. The line's length beyond the sample point is t times its length before the sample point,
// with t = denominator.w / (denominator.x + a denominator.y + b denominator.z). The line's end on the secondary,
// relative to the secondary's centre, is along.w - t (along.x + a along.y + b along.z), for along_u and along_v.
struct Sight {
    vec4 denominator;
    vec4 along_u;
    vec4 along_v;
};

// Makes a Sight. centre, other: vectors from the sample point to the centres of the primary and of the secondary.
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

// The factor t of the line from position `at`; negative if the line does not hit the plane beyond the sample point.
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
// The Sight of a module that may face away from the point. `draw` is the secondary with its flags. The sign of the
// denominator is chosen so that it is positive for lines that hit the module's plane. For a module between the point
// and the primary, t is negative.
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
