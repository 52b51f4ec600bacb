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
    vec4 other_low_mm;   // the second image's box, as that of the first; w: lowest value shown
    vec4 other_high_mm;  // w: highest value shown
    vec4 region_mm;      // middle of the region of interest; w: lowest value in the region
    vec4 region_half_mm; // half of the region's size; w: highest value in the region
    vec4 mixing;         // x: opacity of the second image; y: side of a checkerboard's fields, mm
    ivec4 style;         // x: how two images are combined, in the order of draw_mix; y: 1 = interpolate between voxels;
                         // z: 1 = maximum along the axis; w: the region's shape, in the order of draw_region
};
