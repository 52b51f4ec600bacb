// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Uniforms of all shaders of the viewer's scene. C: struct view_uniforms.
layout(std140, binding = 0) uniform View {
    mat4 clip_of_world;
    vec4 eye;        // mm
    vec4 low_mm;     // lower corner of the image's box (outer faces); w: lowest value shown
    vec4 high_mm;    // upper corner; w: highest value shown
    vec4 overlay;    // x: the overlay's highest value, 0 = none; yzw: places of slices
    ivec4 shown;     // the current slice or hovered module; number of voxels
    vec4 steps;      // volume: step, mm; opacity per mm of highest value and mu; mu of full haze
};
