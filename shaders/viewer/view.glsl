// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Uniforms that all shaders of the viewer's scene share. In C this is struct view_uniforms.
layout(std140, binding = 0) uniform View
{
    mat4 clip_of_world;
    vec4 eye;     // mm
    vec4 low_mm;  // lower corner of the image's box (outer faces); w: lowest value shown
    vec4 high_mm; // upper corner; w: highest value shown
    vec4 overlay; // x: highest value of the overlay, 0 = no overlay; yzw: positions of the three slices, mm
    ivec4 shown;  // x: axis of the slice that is drawn; w: module under the mouse, -1 = none
    vec4 steps;   // volume. x: step in mm; y: opacity per mm at the highest value; z: opacity per mm of the mu-map at
                  // its highest value; w: highest value of the mu-map, 0 = no map
};
