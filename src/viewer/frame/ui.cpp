// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Dear ImGui: its context, its input and its drawing; panels and widgets; pictures, curves and colour bars.
//
// Dear ImGui's backend imgui_impl_opengl3 draws the panels, on visible and on invisible surfaces. The backend
// imgui_impl_glfw is not used. It reads the mouse and the clock from GLFW in each frame, and would therefore need a
// visible window and ignore the input of scripts. Instead, ui_take passes on the input of people and of scripts.
#include "viewer/frame/ui.h"

extern "C" {
#include "base/log.h"
#include "gl/resource.h"
#include "picture/font.h"
}

#include <backends/imgui_impl_opengl3.h>
#include <cfloat>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <imgui.h>
#include <initializer_list>
#include <new>

static float ui_scale = 1.0f; // pixels per unit of the screen

static inline ImVec2 ui_pixels(const double units[2])
{
    return ImVec2((float)units[0] * ui_scale, (float)units[1] * ui_scale);
}

static inline ImU32 ui_packed(uint32_t rgba)
{
    return IM_COL32(rgba >> 24, rgba >> 16 & 255, rgba >> 8 & 255, rgba & 255);
}

// The parts of the screen that a tooltip at the mouse must not cover, in pixels. If there is enough space next to the
// larger part, the tooltip stays outside of it; otherwise it stays outside of the smaller part only.
struct ui_tip {
    ImVec2 large[2], small[2]; // upper left and lower right corners
};

// --- colours ---

static bool is_light;
static const float grounds[2][3] = {{0.09f, 0.10f, 0.12f}, {0.95f, 0.95f, 0.96f}}; // dark, light

// Widgets that can be pressed, or are chosen, have one hue. All other parts are grey.
void ui_set_look(bool light)
{
    struct shade {
        ImGuiCol part;
        float dark, light; // 0 = the colour of the ground, 1 = the colour of the text
    };
    static const struct shade shades[] = {
        {ImGuiCol_ChildBg, 0.0f, 0.0f},           {ImGuiCol_PopupBg, 0.04f, 0.0f},
        {ImGuiCol_Border, 0.16f, 0.22f},          {ImGuiCol_FrameBg, 0.10f, 0.09f},
        {ImGuiCol_FrameBgHovered, 0.17f, 0.15f},  {ImGuiCol_FrameBgActive, 0.22f, 0.20f},
        {ImGuiCol_TitleBg, 0.05f, 0.06f},         {ImGuiCol_TitleBgActive, 0.05f, 0.06f},
        {ImGuiCol_ScrollbarBg, 0.0f, 0.0f},       {ImGuiCol_ScrollbarGrab, 0.25f, 0.25f},
        {ImGuiCol_ScrollbarGrabHovered, 0.32f, 0.32f}, {ImGuiCol_ScrollbarGrabActive, 0.40f, 0.40f},
        {ImGuiCol_Button, 0.17f, 0.14f},          {ImGuiCol_Header, 0.10f, 0.09f},
        {ImGuiCol_HeaderHovered, 0.17f, 0.15f},   {ImGuiCol_HeaderActive, 0.22f, 0.20f},
        {ImGuiCol_Separator, 0.16f, 0.18f},       {ImGuiCol_Tab, 0.08f, 0.08f},
        {ImGuiCol_TabUnfocused, 0.08f, 0.08f},    {ImGuiCol_PlotLines, 0.85f, 0.85f},
        {ImGuiCol_TableBorderLight, 0.16f, 0.18f}};
    static const ImGuiCol accented[] = {ImGuiCol_CheckMark,     ImGuiCol_SliderGrab,  ImGuiCol_SliderGrabActive,
                                        ImGuiCol_ButtonHovered, ImGuiCol_ButtonActive, ImGuiCol_TabHovered,
                                        ImGuiCol_TabActive,     ImGuiCol_TabUnfocusedActive, ImGuiCol_PlotHistogram,
                                        ImGuiCol_TextSelectedBg, ImGuiCol_ResizeGrip, ImGuiCol_ResizeGripHovered};
    is_light = light;
    if (light)
        ImGui::StyleColorsLight();
    else
        ImGui::StyleColorsDark();
    ImVec4 *colours = ImGui::GetStyle().Colors;
    const float *ground = grounds[light];
    const ImVec4 text = light ? ImVec4(0.10f, 0.11f, 0.13f, 1.0f) : ImVec4(0.93f, 0.94f, 0.95f, 1.0f);
    const ImVec4 accent = light ? ImVec4(0.45f, 0.66f, 0.93f, 1.0f) : ImVec4(0.20f, 0.42f, 0.68f, 1.0f);
    colours[ImGuiCol_Text] = text;
    colours[ImGuiCol_WindowBg] = ImVec4(ground[0], ground[1], ground[2], 1.0f);
    for (const struct shade &shade : shades) {
        const float share = light ? shade.light : shade.dark;
        colours[shade.part] = ImVec4(ground[0] + share * (text.x - ground[0]), ground[1] + share * (text.y - ground[1]),
                                     ground[2] + share * (text.z - ground[2]), 1.0f);
    }
    for (const ImGuiCol part : accented) colours[part] = accent;
    colours[ImGuiCol_CheckMark] = colours[ImGuiCol_SliderGrab] =
        light ? ImVec4(0.13f, 0.40f, 0.75f, 1.0f) : ImVec4(0.36f, 0.63f, 0.95f, 1.0f);
}

const float *ui_ground(void)
{
    return grounds[is_light];
}

static ImVec4 ui_tone_colour(enum ui_tone tone)
{
    // Colours that colour-blind people can also distinguish: Okabe and Ito 2008; darker ones on a light ground.
    switch (tone) {
    case UI_DIM: return is_light ? ImVec4(0.38f, 0.40f, 0.44f, 1.0f) : ImVec4(0.60f, 0.62f, 0.66f, 1.0f);
    case UI_GOOD: return is_light ? ImVec4(0.00f, 0.40f, 0.63f, 1.0f) : ImVec4(0.34f, 0.71f, 0.91f, 1.0f);
    case UI_WARNING: return is_light ? ImVec4(0.50f, 0.42f, 0.00f, 1.0f) : ImVec4(0.94f, 0.89f, 0.26f, 1.0f);
    case UI_BAD: return is_light ? ImVec4(0.72f, 0.28f, 0.00f, 1.0f) : ImVec4(0.93f, 0.47f, 0.20f, 1.0f);
    default: return ImGui::GetStyleColorVec4(ImGuiCol_Text);
    }
}

static const float letters_height = 14.0f; // units of the screen

struct ui *ui_create(const struct ui_params *params, const lr_log *log)
{
    struct ui *ui = new (std::nothrow) struct ui();
    if (ui == nullptr) return nullptr;
    ui->window = params->window;
    snprintf(ui->layout_path, sizeof(ui->layout_path), "%s", params->layout_path != nullptr ? params->layout_path : "");
    ImGui::CreateContext();
    ImGuiIO &io = ImGui::GetIO();
    ui_scale = (float)params->window->scale;
    ImGuiStyle &style = ImGui::GetStyle();
    style.WindowRounding = 4.0f;
    style.FrameRounding = 3.0f;
    style.GrabRounding = 3.0f;
    style.TabRounding = 3.0f;
    style.WindowBorderSize = 1.0f;
    ui_set_look(false);
    style.ScaleAllSizes(ui_scale);

    ImFontAtlas *fonts = io.Fonts;
    // The font's characters: Latin, Greek, punctuation, superscripts, arrows and mathematical signs.
    static const ImWchar ranges[] = {0x20, 0xFF, 0x370, 0x3FF, 0x2000, 0x20CF, 0x2190, 0x21FF, 0x2200, 0x22FF, 0};
    ImFontConfig config;
    config.FontDataOwnedByAtlas = false; // the atlas neither frees nor changes the font's bytes
    for (const struct lr_font_file &file : lr_font_files) // the regular font for text, the bold font for headings
        fonts->AddFontFromMemoryTTF(const_cast<unsigned char *>(file.bytes), file.count, letters_height * ui_scale,
                                    &config, ranges);

    static const struct {
        ImGuiKey key;
        int own;
    } keys[] = {{ImGuiKey_Tab, INPUT_KEY_TAB}, {ImGuiKey_LeftArrow, INPUT_KEY_LEFT},
                {ImGuiKey_RightArrow, INPUT_KEY_RIGHT}, {ImGuiKey_UpArrow, INPUT_KEY_UP},
                {ImGuiKey_DownArrow, INPUT_KEY_DOWN}, {ImGuiKey_PageUp, INPUT_KEY_PAGE_UP},
                {ImGuiKey_PageDown, INPUT_KEY_PAGE_DOWN}, {ImGuiKey_Home, INPUT_KEY_HOME},
                {ImGuiKey_End, INPUT_KEY_END}, {ImGuiKey_Delete, INPUT_KEY_DELETE},
                {ImGuiKey_Backspace, INPUT_KEY_BACKSPACE}, {ImGuiKey_Enter, INPUT_KEY_ENTER},
                {ImGuiKey_Escape, INPUT_KEY_ESCAPE}, {ImGuiKey_Space, ' '}, {ImGuiKey_A, 'A'}, {ImGuiKey_C, 'C'},
                {ImGuiKey_V, 'V'}, {ImGuiKey_X, 'X'}, {ImGuiKey_Y, 'Y'}, {ImGuiKey_Z, 'Z'}};
    for (const auto &each : keys) io.KeyMap[each.key] = each.own;

    io.IniFilename = ui->layout_path[0] != '\0' ? ui->layout_path : nullptr;
    io.LogFilename = nullptr;
    io.GetClipboardTextFn = [](void *user) { return window_pasted(static_cast<struct window *>(user)); };
    io.SetClipboardTextFn = [](void *user, const char *text) { window_copy(static_cast<struct window *>(user), text); };
    io.ClipboardUserData = params->window;
    if (!ImGui_ImplOpenGL3_Init("#version 450")) {
        lr_log_write(log, LR_LOG_ERROR, LR_NO_DEVICE,
                     "libGL.so.1 cannot be loaded, by which panels are drawn: install libgl1");
        ui_destroy(ui);
        return nullptr;
    }
    return ui;
}

void ui_destroy(struct ui *ui)
{
    if (ui != nullptr) {
        if (ImGui::GetIO().BackendRendererUserData != nullptr) ImGui_ImplOpenGL3_Shutdown();
        ImGui::DestroyContext();
        delete ui;
    }
}

void ui_take(struct ui *, const struct input_event *event)
{
    ImGuiIO &io = ImGui::GetIO();
    if (event->kind == INPUT_MOVE || event->kind == INPUT_BUTTON || event->kind == INPUT_SCROLL)
        io.MousePos = ImVec2((float)event->at[0], (float)event->at[1]);
    if (event->kind == INPUT_BUTTON || event->kind == INPUT_KEY) {
        io.KeyShift = (event->modifiers & INPUT_SHIFT) != 0;
        io.KeyCtrl = (event->modifiers & INPUT_CONTROL) != 0;
        io.KeyAlt = (event->modifiers & INPUT_ALT) != 0;
    }
    if (event->kind == INPUT_BUTTON) {
        io.MouseDown[event->button] = event->is_down;
    } else if (event->kind == INPUT_SCROLL) {
        io.MouseWheelH += (float)event->by[0];
        io.MouseWheel += (float)event->by[1];
    } else if (event->kind == INPUT_KEY) {
        io.KeysDown[event->key] = event->is_down;
    } else if (event->kind == INPUT_TEXT) {
        io.AddInputCharacter(event->code);
    }
}

void ui_begin(struct ui *ui, double seconds)
{
    ImGuiIO &io = ImGui::GetIO();
    io.DisplaySize = ImVec2((float)ui->window->size[0], (float)ui->window->size[1]);
    io.DeltaTime = seconds > 1e-6 ? (float)seconds : 1e-6f;
    ImGui_ImplOpenGL3_NewFrame();
    ImGui::NewFrame();
}

lr_status ui_end(struct ui *ui, struct gl_target *target)
{
    ImGui::Render();
    ui->wants_mouse = ImGui::GetIO().WantCaptureMouse;
    ui->wants_keys = ImGui::GetIO().WantTextInput;
    if (target != nullptr) {
        glBindFramebuffer(GL_FRAMEBUFFER, target->name);
        ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
        glBindFramebuffer(GL_FRAMEBUFFER, 0);
    }
    // The backend restores the state that gl/pass.h requires, but does not report errors, so the driver is asked.
    return gl_context_check(ui->window->ctx, "panels");
}

// --- at the mouse ---

static void ui_show_tip(const struct ui_tip *tip, const char *text)
{
    const float wrap = 440.0f * ui_scale;
    const ImVec2 letters = ImGui::CalcTextSize(text, nullptr, false, wrap);
    const ImVec2 padding = ImGui::GetStyle().WindowPadding;
    const double size[2] = {(double)(letters.x + 2.0f * padding.x), (double)(letters.y + 2.0f * padding.y)};
    const ImVec2 display = ImGui::GetIO().DisplaySize;
    const double screen[2] = {(double)display.x, (double)display.y};
    double at[2];
    for (const ImVec2 *kept : {tip->large, tip->small}) {
        const struct place_box box = {{(double)kept[0].x, (double)kept[0].y}, {(double)kept[1].x, (double)kept[1].y}};
        if (place_beside(&box, size, screen, at)) break;
    }
    ImGui::SetNextWindowPos(ImVec2((float)at[0], (float)at[1]));
    ImGui::BeginTooltip();
    ImGui::PushTextWrapPos(padding.x + wrap);
    ImGui::TextUnformatted(text);
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
}

static bool is_in_table; // texts in tables do not wrap, because a column is as wide as its text

// --- panels ---

bool ui_panel(const char *label, const struct ui_place *place, bool *is_open)
{
    ImGuiWindowFlags flags = ImGuiWindowFlags_NoFocusOnAppearing;
    const ImGuiCond when = place->is_fixed ? ImGuiCond_Always : ImGuiCond_FirstUseEver;
    if (place->is_fixed) {
        flags |= ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoResize |
                 ImGuiWindowFlags_NoSavedSettings;
    }
    if (place->is_bare) flags |= ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoScrollbar;
    if (place->has_ground)
        flags |= ImGuiWindowFlags_NoBackground;
    else
        ImGui::SetNextWindowBgAlpha(1.0f); // the background is opaque, so that it hides the text below the panel
    ImGui::SetNextWindowPos(ui_pixels(place->at), when);
    ImGui::SetNextWindowSize(ui_pixels(place->size), when);
    return ImGui::Begin(label, is_open, flags);
}

void ui_panel_end(void)
{
    ImGui::End();
}

void ui_text_size(const char *text, double width, double size[2])
{
    const ImVec2 found = ImGui::CalcTextSize(text, nullptr, false, (float)width * ui_scale);
    size[0] = (double)(found.x / ui_scale);
    size[1] = (double)(found.y / ui_scale);
}

void ui_screen(double size[2])
{
    size[0] = (double)(ImGui::GetIO().DisplaySize.x / ui_scale);
    size[1] = (double)(ImGui::GetIO().DisplaySize.y / ui_scale);
}

bool ui_section(const char *label, bool is_open_first)
{
    ImGui::PushFont(ImGui::GetIO().Fonts->Fonts[1]);
    const bool is_open = ImGui::CollapsingHeader(label, is_open_first ? ImGuiTreeNodeFlags_DefaultOpen : 0);
    ImGui::PopFont();
    return is_open;
}

int ui_tabs(const char *label, const char *const *names, int count, int wanted)
{
    // If the names do not fit, their margins become narrower. If even this does not suffice, the row scrolls.
    const ImGuiStyle &style = ImGui::GetStyle();
    float room = ImGui::GetContentRegionAvail().x;
    for (int k = 0; k < count; k++) room -= ImGui::CalcTextSize(names[k]).x + 1.0f + style.ItemInnerSpacing.x;
    const float margin = fminf(fmaxf(floorf(0.5f * room / (float)count), 1.0f), style.FramePadding.x);
    int chosen = -1;
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(margin, style.FramePadding.y));
    if (ImGui::BeginTabBar(label, ImGuiTabBarFlags_FittingPolicyScroll)) {
        for (int k = 0; k < count; k++) {
            if (ImGui::BeginTabItem(names[k], nullptr, k == wanted ? ImGuiTabItemFlags_SetSelected : 0)) {
                chosen = k;
                ImGui::EndTabItem();
            }
        }
        ImGui::EndTabBar();
    }
    ImGui::PopStyleVar();
    return chosen;
}

// --- text ---

void ui_text(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    ImGui::TextV(format, list);
    va_end(list);
}

void ui_toned(enum ui_tone tone, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    ImGui::PushTextWrapPos(is_in_table ? -1.0f : 0.0f);
    ImGui::TextColoredV(ui_tone_colour(tone), format, list);
    ImGui::PopTextWrapPos();
    va_end(list);
}

void ui_hint(const char *format, ...)
{
    if (ImGui::IsItemHovered()) {
        char text[1024];
        va_list list;
        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        const ImVec2 from = ImGui::GetItemRectMin(), to = ImGui::GetItemRectMax();
        const struct ui_tip tip = {{from, to}, {from, to}};
        ui_show_tip(&tip, text);
    }
}

void ui_line(void)
{
    ImGui::Separator();
}

void ui_beside(void)
{
    ImGui::SameLine();
}

void ui_space(double height)
{
    ImGui::Dummy(ImVec2(0.0f, (float)height * ui_scale));
}

bool ui_table(const char *label, int columns)
{
    is_in_table = ImGui::BeginTable(label, columns, ImGuiTableFlags_SizingFixedFit);
    return is_in_table;
}

void ui_cell(void)
{
    ImGui::TableNextColumn();
}

void ui_table_end(void)
{
    ImGui::EndTable();
    is_in_table = false;
}

void ui_field(const char *name, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    ImGui::TableNextColumn();
    ImGui::TextColored(ui_tone_colour(UI_DIM), "%s", name);
    ImGui::TableNextColumn();
    ImGui::TextV(format, list);
    va_end(list);
}

// --- widgets ---

namespace
{

// Writes a field's label to its left, in a column, and gives the field the rest of the line. A field without a label
// leaves room for a button.
struct field {
    char name[128];

    explicit field(const char *label)
    {
        const char *hidden = strstr(label, "##");
        const int length = hidden != nullptr ? (int)(hidden - label) : (int)strlen(label);
        const float room = ImGui::GetContentRegionAvail().x, left = ImGui::GetCursorPosX();
        snprintf(name, sizeof(name), "##%s", label);
        if (length == 0) {
            ImGui::SetNextItemWidth(0.68f * room);
            return;
        }
        const float text = ImGui::CalcTextSize(label, label + length).x + 8.0f * ui_scale;
        ImGui::AlignTextToFramePadding();
        ImGui::TextUnformatted(label, label + length);
        ImGui::SameLine(left + fmaxf(fminf(0.36f * room, 140.0f * ui_scale), text));
        ImGui::SetNextItemWidth(-1.0f);
    }
};

} // namespace

bool ui_button(const char *label, bool is_enabled)
{
    ImGui::BeginDisabled(!is_enabled);
    const bool pressed = ImGui::Button(label);
    ImGui::EndDisabled();
    return pressed;
}

bool ui_strip(const char *label)
{
    const ImVec2 corner = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
    ImGui::SetCursorScreenPos(corner);
    const bool pressed = ImGui::InvisibleButton(label, size);
    ImDrawList *list = ImGui::GetWindowDrawList();
    if (ImGui::IsItemHovered())
        list->AddRectFilled(corner, ImVec2(corner.x + size.x, corner.y + size.y), ImGui::GetColorU32(ImGuiCol_Button));
    float y = corner.y + 8.0f * ui_scale;
    for (const char *letter = label; *letter != '\0'; letter++) {
        const ImVec2 letters = ImGui::CalcTextSize(letter, letter + 1);
        list->AddText(ImVec2(corner.x + 0.5f * (size.x - letters.x), y), ImGui::GetColorU32(ImGuiCol_Text), letter,
                      letter + 1);
        y += letters.y;
    }
    return pressed;
}

bool ui_check(const char *label, bool *value)
{
    return ImGui::Checkbox(label, value);
}

bool ui_slide(const char *label, int *value, const int range[2])
{
    return ImGui::SliderInt(field(label).name, value, range[0], range[1], "%d", ImGuiSliderFlags_AlwaysClamp);
}

bool ui_slide_real(const char *label, double *value, const double range[2])
{
    return ImGui::SliderScalar(field(label).name, ImGuiDataType_Double, value, &range[0], &range[1], "%.4g",
                               ImGuiSliderFlags_AlwaysClamp);
}

bool ui_choose(const char *label, int *value, const char *const *names, int count)
{
    return ImGui::Combo(field(label).name, value, names, count);
}

bool ui_radio(const char *label, int *value, int mine)
{
    return ImGui::RadioButton(label, value, mine);
}

bool ui_item(const char *label, bool is_chosen)
{
    return ImGui::Selectable(label, is_chosen, is_in_table ? ImGuiSelectableFlags_SpanAllColumns : 0);
}

void ui_list(const char *label, double height)
{
    ImGui::BeginChild(label, ImVec2(0.0f, (float)height * ui_scale), true);
}

void ui_list_end(void)
{
    ImGui::EndChild();
}

bool ui_is_double_click(void)
{
    return ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
}

bool ui_reals(const char *label, double *values, int count)
{
    ImGui::InputScalarN(field(label).name, ImGuiDataType_Double, values, count, nullptr, nullptr, "%.5g");
    return ImGui::IsItemDeactivatedAfterEdit();
}

bool ui_integers(const char *label, int *values, int count)
{
    ImGui::InputScalarN(field(label).name, ImGuiDataType_S32, values, count);
    return ImGui::IsItemDeactivatedAfterEdit();
}

bool ui_write(const char *label, char *text, size_t size)
{
    return ImGui::InputText(field(label).name, text, size, ImGuiInputTextFlags_EnterReturnsTrue);
}

void ui_progress(double share, const char *text)
{
    ImGui::ProgressBar((float)share, ImVec2(-1.0f, 0.0f), text);
}

static ImVec2 image_corner, image_size; // corner and size of the picture shown last

static ImVec2 on_image(const double at[2])
{
    return ImVec2(image_corner.x + (float)at[0] * image_size.x, image_corner.y + (float)at[1] * image_size.y);
}

void ui_tooltip(const struct ui_part *part, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    const ImVec2 a = on_image(part->from), b = on_image(part->to);
    const struct ui_tip tip = {{image_corner, ImVec2(image_corner.x + image_size.x, image_corner.y + image_size.y)},
                               {ImVec2(fminf(a.x, b.x), fminf(a.y, b.y)), ImVec2(fmaxf(a.x, b.x), fmaxf(a.y, b.y))}};
    ui_show_tip(&tip, text);
}

// --- pictures ---

struct ui_touch ui_image(const char *label, const struct ui_image *image)
{
    const ImVec2 corner = ImGui::GetCursorScreenPos(), size = ui_pixels(image->size);
    const float top = image->is_top_down ? 0.0f : 1.0f;
    ImGui::InvisibleButton(label, ImVec2(size.x > 1.0f ? size.x : 1.0f, size.y > 1.0f ? size.y : 1.0f));
    ImGui::GetWindowDrawList()->AddImage(reinterpret_cast<ImTextureID>(static_cast<uintptr_t>(image->texture->name)),
                                         corner, ImVec2(corner.x + size.x, corner.y + size.y), ImVec2(0.0f, top),
                                         ImVec2(1.0f, 1.0f - top));
    image_corner = corner;
    image_size = size;
    const ImGuiIO &io = ImGui::GetIO();
    struct ui_touch touch = {};
    touch.is_over = ImGui::IsItemHovered();
    touch.is_held = ImGui::IsItemActive();
    touch.is_pressed = ImGui::IsItemActivated();
    touch.at[0] = (double)((io.MousePos.x - corner.x) / size.x);
    touch.at[1] = (double)((io.MousePos.y - corner.y) / size.y);
    touch.scroll = touch.is_over ? (double)io.MouseWheel : 0.0;
    return touch;
}

void ui_mark(const double from[2], const double to[2], bool is_box, uint32_t colour)
{
    ImDrawList *list = ImGui::GetWindowDrawList();
    if (is_box)
        list->AddRect(on_image(from), on_image(to), ui_packed(colour));
    else
        list->AddLine(on_image(from), on_image(to), ui_packed(colour));
}

void ui_label(const double at[2], uint32_t colour, const char *text)
{
    ImDrawList *list = ImGui::GetBackgroundDrawList();
    const ImVec2 place = ui_pixels(at);
    list->AddText(ImVec2(place.x + 1.0f, place.y + 1.0f), IM_COL32(0, 0, 0, 200), text);
    list->AddText(place, ui_packed(colour), text);
}

void ui_stroke(const double from[2], const double to[2], uint32_t colour)
{
    ImGui::GetBackgroundDrawList()->AddLine(ui_pixels(from), ui_pixels(to), ui_packed(colour));
}

void ui_clip(const double at[2], const double size[2])
{
    const ImVec2 from = ui_pixels(at), by = ui_pixels(size);
    ImGui::GetBackgroundDrawList()->PushClipRect(from, ImVec2(from.x + by.x, from.y + by.y));
}

void ui_unclip(void)
{
    ImGui::GetBackgroundDrawList()->PopClipRect();
}

// --- axes ---

namespace
{

// An axis on the screen: a range of values and the pixels at its ends.
struct axis {
    double range[2]; // values at the two ends
    float ends[2];   // pixels of the two ends
    struct ticks ticks;
};

float place_on(const struct axis *axis, double value)
{
    const double share = (value - axis->range[0]) / (axis->range[1] - axis->range[0]);
    return axis->ends[0] + (float)share * (axis->ends[1] - axis->ends[0]);
}

float write_width(const char *text)
{
    return ImGui::CalcTextSize(text).x;
}

// Width of the widest number along the axis, in pixels.
float widest(const struct ticks *ticks)
{
    char text[TICKS_TEXT];
    float most = 0.0f;
    for (int k = 0; k < ticks->count; k++) {
        ticks_write(ticks, k, text);
        most = fmaxf(most, write_width(text));
    }
    return most;
}

ImU32 dim_colour(void)
{
    return ImGui::GetColorU32(ui_tone_colour(UI_DIM));
}

// Writes numbers to the left of a vertical axis, and draws a line at the height of each number.
void write_heights(ImDrawList *list, const struct axis *axis, float left, float right)
{
    char text[TICKS_TEXT];
    for (int k = 0; k < axis->ticks.count; k++) {
        const float at = place_on(axis, axis->ticks.values[k]);
        ticks_write(&axis->ticks, k, text);
        list->AddLine(ImVec2(left, at), ImVec2(right, at), ImGui::GetColorU32(ImGuiCol_Border));
        list->AddText(ImVec2(left - 4.0f * ui_scale - write_width(text), at - 0.5f * ImGui::GetTextLineHeight()),
                      dim_colour(), text);
    }
}

// Writes numbers below a horizontal axis, between the pixels room[0] and room[1]. A number that would overlap the
// number to its left is left out.
void write_numbers(ImDrawList *list, const struct axis *axis, float top, const float room[2])
{
    char text[TICKS_TEXT];
    float free_from = room[0];
    for (int k = 0; k < axis->ticks.count; k++) {
        ticks_write(&axis->ticks, k, text);
        const float x = place_on(axis, axis->ticks.values[k]), width = write_width(text);
        list->AddLine(ImVec2(x, top), ImVec2(x, top + 3.0f * ui_scale), dim_colour());
        const float left = fminf(fmaxf(x - 0.5f * width, room[0]), room[1] - width);
        if (left >= free_from) {
            list->AddText(ImVec2(left, top + 3.0f * ui_scale), dim_colour(), text);
            free_from = left + width + 6.0f * ui_scale;
        }
    }
}

} // namespace

// --- colours ---

double ui_bar_height(const struct ui_bar *bar)
{
    const float title = ImGui::CalcTextSize(bar->title, nullptr, false, (float)bar->width * ui_scale).y;
    return (double)((ImGui::GetTextLineHeight() + title) / ui_scale) + 17.0;
}

void ui_bar(const struct ui_bar *bar, const double *at)
{
    const float width = (float)bar->width * ui_scale, height = (float)ui_bar_height(bar) * ui_scale;
    const ImVec2 corner = at != nullptr ? ui_pixels(at) : ImGui::GetCursorScreenPos();
    ImDrawList *list = at != nullptr ? ImGui::GetBackgroundDrawList() : ImGui::GetWindowDrawList();
    if (at != nullptr) {
        const ImVec2 margin(6.0f * ui_scale, 4.0f * ui_scale);
        list->AddRectFilled(ImVec2(corner.x - margin.x, corner.y - margin.y),
                            ImVec2(corner.x + width + margin.x, corner.y + height), IM_COL32(14, 15, 19, 200),
                            3.0f * ui_scale);
    }
    const bool was_light = is_light;
    is_light = is_light && at == nullptr; // the scene is dark in either look
    const ImU32 text = at != nullptr ? IM_COL32(237, 240, 242, 255) : ImGui::GetColorU32(ImGuiCol_Text);
    const float top = corner.y + ImGui::CalcTextSize(bar->title, nullptr, false, width).y + 2.0f * ui_scale;
    const float bottom = top + 10.0f * ui_scale;
    struct axis axis = {{bar->low, bar->high}, {corner.x, corner.x + width}, {}};
    axis.ticks = ticks_make(axis.range, 5, false);
    list->AddText(nullptr, 0.0f, corner, text, bar->title, nullptr, width);
    for (int k = 0; k + 1 < UI_BAR_COLOURS; k++) {
        const float from = corner.x + width * (float)k / (UI_BAR_COLOURS - 1);
        const float to = corner.x + width * (float)(k + 1) / (UI_BAR_COLOURS - 1);
        const ImU32 left = ui_packed(bar->colours[k]), right = ui_packed(bar->colours[k + 1]);
        list->AddRectFilledMultiColor(ImVec2(from, top), ImVec2(to, bottom), left, right, right, left);
    }
    list->AddRect(ImVec2(corner.x, top), ImVec2(corner.x + width, bottom), dim_colour());
    const float room[2] = {corner.x, corner.x + width};
    write_numbers(list, &axis, bottom, room);
    is_light = was_light;
    if (at == nullptr) ImGui::Dummy(ImVec2(width, height));
}

void ui_square(const uint32_t colours[4], double size)
{
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    const float side = (float)size * ui_scale;
    ImGui::GetWindowDrawList()->AddRectFilledMultiColor(corner, ImVec2(corner.x + side, corner.y + side),
                                                        ui_packed(colours[2]), ui_packed(colours[3]),
                                                        ui_packed(colours[1]), ui_packed(colours[0]));
    ImGui::Dummy(ImVec2(side, side));
}

// --- curves ---

namespace
{

struct plot {
    ImVec2 corners[2]; // upper left and lower right corners of the plot area
    struct axis x, y;
};

// Draws the frame of a curve and the numbers along both axes. The frame begins to the right of the widest number
// along y.
struct plot draw_axes(ImDrawList *list, const struct ui_curve *curve, ImVec2 corner, ImVec2 size)
{
    const float line = ImGui::GetTextLineHeight();
    struct plot plot = {{corner, ImVec2(corner.x + size.x, corner.y + size.y)}, {}, {}};
    double *range = plot.y.range;
    range[0] = HUGE_VAL;
    range[1] = -HUGE_VAL;
    for (int n = -1; n < curve->num_beside; n++) {
        const float *values = n < 0 ? curve->values : curve->beside[n].values;
        for (int k = 0; k < curve->count; k++) {
            if (!std::isfinite(values[k])) continue;
            range[0] = fmin(range[0], (double)values[k]);
            range[1] = fmax(range[1], (double)values[k]);
        }
    }
    if (!(range[0] < range[1])) { // all values are equal, or there are none
        const double middle = range[0] == range[1] ? range[0] : 0.0;
        const double half = middle != 0.0 ? 0.01 * fabs(middle) : 1.0;
        range[0] = middle - half;
        range[1] = middle + half;
    }
    plot.y.ticks = ticks_make(range, size.y > 6.0f * line ? 5 : 3, false);
    plot.x.range[0] = curve->x[0];
    plot.x.range[1] = curve->x[1] > curve->x[0] ? curve->x[1] : curve->x[0] + 1.0;
    plot.x.ticks = ticks_make(plot.x.range, 7, curve->is_counted);
    plot.x.ends[0] = corner.x + fminf(widest(&plot.y.ticks) + 6.0f * ui_scale, 0.5f * size.x);
    plot.x.ends[1] = corner.x + size.x - 4.0f * ui_scale;
    plot.y.ends[0] = corner.y + size.y - 2.0f * line - 4.0f * ui_scale;
    plot.y.ends[1] = corner.y + line + 6.0f * ui_scale;

    const float *x = plot.x.ends, *y = plot.y.ends;
    list->AddRectFilled(ImVec2(x[0], y[1]), ImVec2(x[1], y[0]), ImGui::GetColorU32(ImGuiCol_FrameBg));
    list->AddText(corner, ImGui::GetColorU32(ImGuiCol_Text), curve->title);
    write_heights(list, &plot.y, x[0], x[1]);
    const float room[2] = {corner.x, plot.corners[1].x};
    write_numbers(list, &plot.x, y[0], room);
    const float label = 0.5f * (x[0] + x[1] - write_width(curve->x_label));
    list->AddText(ImVec2(label, y[0] + line + 3.0f * ui_scale), dim_colour(), curve->x_label);
    return plot;
}

} // namespace

struct ui_reading ui_curve(const char *label, const struct ui_curve *curve)
{
    const float width = fmaxf(ImGui::GetContentRegionAvail().x, 60.0f * ui_scale);
    const float height = (curve->height > 0.0 ? (float)curve->height : 124.0f) * ui_scale;
    const ImVec2 corner = ImGui::GetCursorScreenPos();
    ImGui::InvisibleButton(label, ImVec2(width, height));
    if (curve->count < 1) return {-1, 0.0, 0.0};
    ImDrawList *list = ImGui::GetWindowDrawList();
    list->PushClipRect(corner, ImVec2(corner.x + width, corner.y + height), true);
    const struct plot plot = draw_axes(list, curve, corner, ImVec2(width, height));
    const ImU32 own = curve->colour != 0 ? ui_packed(curve->colour) : ImGui::GetColorU32(ImGuiCol_PlotLines);
    const auto x_of = [curve](int k) {
        return curve->count > 1 ? curve->x[0] + k * (curve->x[1] - curve->x[0]) / (curve->count - 1) : curve->x[0];
    };
    const auto point_of = [&plot, x_of](const float *values, int k) {
        return ImVec2(place_on(&plot.x, x_of(k)), place_on(&plot.y, (double)values[k]));
    };

    // The curve itself comes last, above the other series.
    for (int n = 0; n <= curve->num_beside; n++) {
        const bool is_own = n == curve->num_beside;
        const float *values = is_own ? curve->values : curve->beside[n].values;
        const ImU32 colour = is_own ? own : ui_packed(curve->beside[n].colour);
        for (int k = 0; k < curve->count; k++) {
            if (!std::isfinite(values[k])) continue;
            const ImVec2 here = point_of(values, k);
            if (k > 0 && std::isfinite(values[k - 1])) list->AddLine(point_of(values, k - 1), here, colour);
            if (curve->is_counted && curve->count < 50) list->AddCircleFilled(here, 2.0f * ui_scale, colour);
        }
    }

    // The legend is to the right of the title. Names are placed from the plot's right edge leftwards.
    float right = plot.corners[1].x - 4.0f * ui_scale;
    const float left = plot.corners[0].x + write_width(curve->title) + 12.0f * ui_scale;
    for (int k = -1; k < curve->num_beside && curve->num_beside > 0; k++) {
        const char *name = k < 0 ? curve->name : curve->beside[k].name;
        const ImU32 colour = k < 0 ? own : ui_packed(curve->beside[k].colour);
        if (name != nullptr && right - write_width(name) > left) {
            right -= write_width(name);
            list->AddText(ImVec2(right, plot.corners[0].y), colour, name);
            right -= 10.0f * ui_scale;
        }
    }

    struct ui_reading reading = {-1, 0.0, 0.0};
    if (ImGui::IsItemHovered()) {
        // The reading is the value nearest to the mouse along x.
        const float *x = plot.x.ends;
        const float share = (ImGui::GetIO().MousePos.x - x[0]) / fmaxf(x[1] - x[0], 1.0f);
        const int last = curve->count - 1, nearest = (int)floorf(share * (float)last + 0.5f);
        const int k = nearest < 0 ? 0 : nearest > last ? last : nearest;
        reading = {k, x_of(k), (double)curve->values[k]};

        // A vertical line marks this value, and a tooltip lists the values of all series.
        const ImVec2 at = point_of(curve->values, k);
        const float *y = plot.y.ends;
        char text[1024];
        list->AddLine(ImVec2(at.x, y[1]), ImVec2(at.x, y[0]), dim_colour());
        const char *name = curve->num_beside > 0 ? curve->name : curve->title;
        int length = snprintf(text, sizeof(text), "%s: %.6g\n%s: %.9g", curve->x_label, reading.x, name,
                              reading.value);
        int number = 1;
        for (int n = 0; n < curve->num_beside && length < (int)sizeof(text); n++) {
            const struct ui_series *series = &curve->beside[n];
            number = series->name != nullptr ? 1 : number + 1;
            name = series->name != nullptr ? series->name : name;
            const bool is_one =
                series->name != nullptr && (n + 1 == curve->num_beside || curve->beside[n + 1].name != nullptr);
            length += is_one ? snprintf(text + length, sizeof(text) - (size_t)length, "\n%s: %.9g", name,
                                        (double)series->values[k])
                             : snprintf(text + length, sizeof(text) - (size_t)length, "\n%s %d: %.9g", name, number,
                                        (double)series->values[k]);
        }
        const struct ui_tip tip = {{plot.corners[0], plot.corners[1]}, {ImVec2(at.x, y[1]), ImVec2(at.x, y[0])}};
        ui_show_tip(&tip, text);
    }
    list->PopClipRect();
    return reading;
}

// --- bars ---

int ui_bars(const char *label, const struct ui_bars *bars)
{
    const float width = fmaxf(ImGui::GetContentRegionAvail().x, 60.0f * ui_scale);
    const float height = (bars->height > 0.0 ? (float)bars->height : 124.0f) * ui_scale;
    const ImVec2 corner = ImGui::GetCursorScreenPos(), opposite(corner.x + width, corner.y + height);
    ImGui::InvisibleButton(label, ImVec2(width, height));
    if (bars->count < 1) return -1;

    // The axis leaves space above or below each bar for the bar's value, and to the left for the numbers along y.
    const float line = ImGui::GetTextLineHeight();
    struct axis y = {};
    for (int k = 0; k < bars->count; k++) {
        y.range[0] = fmin(y.range[0], bars->values[k]);
        y.range[1] = fmax(y.range[1], bars->values[k]);
    }
    if (!(y.range[0] < y.range[1])) y.range[1] = 1.0;
    y.ticks = ticks_make(y.range, 4, false);
    y.ends[0] = opposite.y - 2.0f * line - 4.0f * ui_scale - (y.range[0] < 0.0 ? line : 0);
    y.ends[1] = corner.y + 2.0f * line + 6.0f * ui_scale;
    const float left = corner.x + fminf(widest(&y.ticks) + 6.0f * ui_scale, 0.5f * width);
    const float right = opposite.x - 4.0f * ui_scale, bottom = opposite.y - 2.0f * line - 3.0f * ui_scale;
    const float step = (right - left) / (float)bars->count, zero = place_on(&y, 0.0);

    ImDrawList *list = ImGui::GetWindowDrawList();
    const ImU32 text_colour = ImGui::GetColorU32(ImGuiCol_Text);
    char text[256];
    list->PushClipRect(corner, opposite, true);
    list->AddRectFilled(ImVec2(left, corner.y + line + 4.0f * ui_scale), ImVec2(right, bottom),
                        ImGui::GetColorU32(ImGuiCol_FrameBg));
    list->AddText(corner, text_colour, bars->title);
    write_heights(list, &y, left, right);
    list->AddLine(ImVec2(left, zero), ImVec2(right, zero), dim_colour());
    list->AddText(ImVec2(0.5f * (left + right - write_width(bars->x_label)), bottom + line + 1.0f * ui_scale),
                  dim_colour(), bars->x_label);

    for (int k = 0; k < bars->count; k++) {
        const double value = bars->values[k];
        const float at = place_on(&y, value), x = left + step * (float)k, middle = x + 0.5f * step;
        list->AddRectFilled(ImVec2(x + 0.15f * step, fminf(at, zero)), ImVec2(x + 0.85f * step, fmaxf(at, zero) + 1.0f),
                            ImGui::GetColorU32(ui_tone_colour(value < 0.0 ? UI_BAD : UI_GOOD)));
        snprintf(text, sizeof(text), "%.3f", value);
        if (write_width(text) < step - 2.0f * ui_scale)
            list->AddText(ImVec2(middle - 0.5f * write_width(text), value < 0.0 ? at : at - line), text_colour, text);
        snprintf(text, sizeof(text), "%d", k + 1);
        if (write_width(text) < step)
            list->AddText(ImVec2(middle - 0.5f * write_width(text), bottom + 1.0f * ui_scale), dim_colour(), text);
    }
    list->PopClipRect();

    const int touched = (int)floorf((ImGui::GetIO().MousePos.x - left) / step);
    if (!ImGui::IsItemHovered() || touched < 0 || touched >= bars->count) return -1;
    const float x = left + step * (float)touched;
    snprintf(text, sizeof(text), "%s %d\n%s: %.9g", bars->x_label, touched + 1, bars->title, bars->values[touched]);
    const struct ui_tip tip = {{corner, opposite}, {ImVec2(x, corner.y), ImVec2(x + step, opposite.y)}};
    ui_show_tip(&tip, text);
    return touched;
}

// --- histograms ---

bool ui_histogram(const char *label, const struct ui_histogram *histogram, double window[2])
{
    const float width = fmaxf(ImGui::GetContentRegionAvail().x, 60.0f * ui_scale), height = 70.0f * ui_scale;
    const ImVec2 corner = ImGui::GetCursorScreenPos(), opposite(corner.x + width, corner.y + height);
    const float bottom = opposite.y - ImGui::GetTextLineHeight() - 5.0f * ui_scale;
    ImGui::InvisibleButton(label, ImVec2(width, height));
    struct axis axis = {{histogram->range[0], histogram->range[1]}, {corner.x + 4.0f, opposite.x - 4.0f}, {}};
    if (!(axis.range[0] < axis.range[1])) axis.range[1] = axis.range[0] + 1.0;
    axis.ticks = ticks_make(axis.range, 5, false);

    ImDrawList *list = ImGui::GetWindowDrawList();
    float most = 1.0f;
    for (int k = 0; k < histogram->count; k++) most = fmaxf(most, log1pf(histogram->counts[k]));
    list->PushClipRect(corner, opposite, true);
    list->AddRectFilled(corner, ImVec2(opposite.x, bottom), ImGui::GetColorU32(ImGuiCol_FrameBg));
    const float step = (axis.ends[1] - axis.ends[0]) / (float)histogram->count;
    for (int k = 0; k < histogram->count; k++) {
        const float left = axis.ends[0] + step * (float)k;
        const float top = bottom - (bottom - corner.y - 3.0f) * log1pf(histogram->counts[k]) / most;
        list->AddRectFilled(ImVec2(left, top), ImVec2(left + step, bottom), dim_colour());
    }
    float ends[2];
    for (int k = 0; k < 2; k++) ends[k] = place_on(&axis, window[k]);
    list->AddRectFilled(ImVec2(ends[0], corner.y), ImVec2(ends[1], bottom), IM_COL32(79, 155, 232, 50));
    for (const float end : ends) list->AddLine(ImVec2(end, corner.y), ImVec2(end, bottom), IM_COL32(79, 155, 232, 255));
    const float room[2] = {corner.x, opposite.x};
    write_numbers(list, &axis, bottom, room);
    list->PopClipRect();

    // If the press is less than 8 pixels from an end, this end follows the mouse. Otherwise both ends follow the mouse.
    ImGuiStorage *held = ImGui::GetStateStorage();
    const ImGuiID id = ImGui::GetID(label);
    const ImGuiIO &io = ImGui::GetIO();
    if (ImGui::IsItemActivated()) {
        const float away[2] = {fabsf(io.MousePos.x - ends[0]), fabsf(io.MousePos.x - ends[1])};
        const int nearer = away[1] < away[0];
        held->SetInt(id, away[nearer] < 8.0f * ui_scale ? nearer : 2);
    }
    if (!ImGui::IsItemActive() || io.MouseDelta.x == 0.0f) return false;
    const double by = (double)io.MouseDelta.x * (axis.range[1] - axis.range[0]) / (double)(axis.ends[1] - axis.ends[0]);
    const int which = held->GetInt(id, 2);
    const double moved[2] = {window[0] + (which != 1 ? by : 0.0), window[1] + (which != 0 ? by : 0.0)};
    if (!(moved[0] < moved[1])) return false;
    window[0] = moved[0];
    window[1] = moved[1];
    return true;
}
