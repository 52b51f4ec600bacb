/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * What the files that know Dear ImGui share. */
#ifndef LR_VIEWER_UI_PRIVATE_H
#define LR_VIEWER_UI_PRIVATE_H

#include "viewer/frame/ui.h"

extern "C" {
#include "base/log.h"
#include "gl/resource.h"
}

#include <imgui.h>

extern float ui_scale; // pixels per unit of the screen

inline ImVec2 ui_pixels(const double units[2])
{
    return ImVec2((float)units[0] * ui_scale, (float)units[1] * ui_scale);
}

inline ImU32 ui_packed(uint32_t rgba)
{
    return IM_COL32(rgba >> 24, rgba >> 16 & 255, rgba >> 8 & 255, rgba & 255);
}

// What Dear ImGui's backend for OpenGL takes a texture to be: its name there.
inline ImTextureID ui_texture(const struct gl_texture *texture)
{
    return reinterpret_cast<ImTextureID>(static_cast<uintptr_t>(texture->name));
}

ImVec4 ui_tone_colour(enum ui_tone tone);

// A box of text at the mouse that leaves free one of two parts of the screen, in pixels: the larger
// one where there is room beside it, else the smaller one.
struct ui_tip {
    ImVec2 large[2], small[2]; // upper left and lower right corner
};
void ui_show_tip(const struct ui_tip *tip, const char *text);

#endif
