/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#version 450 core
// variants: HALF=1
/* One triangle over the whole viewport; with HALF, clipped to x > 0. */
#ifdef HALF
out float gl_ClipDistance[1];
#endif

void main()
{
    vec2 corner = vec2(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0);
    gl_Position = vec4(corner, float(gl_InstanceID) * 0.5 - 0.25, 1.0);
#ifdef HALF
    gl_ClipDistance[0] = corner.x;
#endif
}
