// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// The only file that knows Dear ImGui.
#include "viewer/ui.h"

#include "viewer/ui_draw.h"
#include "viewer/window.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <imgui.h>
#include <new>
#include <vector>

struct ui {
    struct window *window;
    struct ui_draw *draw;
    char layout_path[1024];
    std::vector<uint32_t> indices;
    std::vector<ImDrawVert> corners;
};

namespace
{

const char *const letters_path = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
const float letters_height = 14.0f;

float scale_now = 1.0f;          // pixels per unit
bool is_in_table;                // columns fit their text, which must not wrap at their width
ImVec2 image_corner, image_size; // of the picture last shown

ImVec2 pixels(const double units[2])
{
    return ImVec2((float)units[0] * scale_now, (float)units[1] * scale_now);
}

ImU32 packed(uint32_t rgba)
{
    return IM_COL32(rgba >> 24, rgba >> 16 & 255, rgba >> 8 & 255, rgba & 255);
}

ImVec4 tone_colour(enum ui_tone tone)
{
    // Told apart by the colour-blind too: Okabe and Ito 2008.
    switch (tone) {
    case UI_DIM:
        return ImVec4(0.60f, 0.62f, 0.66f, 1.0f);
    case UI_GOOD:
        return ImVec4(0.34f, 0.71f, 0.91f, 1.0f);
    case UI_WARNING:
        return ImVec4(0.94f, 0.89f, 0.26f, 1.0f);
    case UI_BAD:
        return ImVec4(0.93f, 0.47f, 0.20f, 1.0f);
    default:
        return ImGui::GetStyleColorVec4(ImGuiCol_Text);
    }
}

void choose_style(float scale)
{
    ImGui::StyleColorsDark();
    ImGuiStyle &style = ImGui::GetStyle();
    style.WindowRounding = 4.0f;
    style.FrameRounding = 3.0f;
    style.WindowBorderSize = 1.0f;
    style.Colors[ImGuiCol_WindowBg] = ImVec4(0.09f, 0.10f, 0.12f, 0.94f);
    style.Colors[ImGuiCol_TitleBgActive] = ImVec4(0.13f, 0.25f, 0.38f, 1.0f);
    style.ScaleAllSizes(scale);
}

void choose_letters(float scale)
{
    ImFontAtlas *fonts = ImGui::GetIO().Fonts;
    FILE *file = fopen(letters_path, "rb");
    if (file != nullptr) {
        fclose(file);
        // Latin, Greek, general punctuation, superscripts, arrows and mathematical signs.
        static const ImWchar ranges[] = {0x20,   0xFF,   0x370,  0x3FF,  0x2000, 0x20CF,
                                         0x2190, 0x21FF, 0x2200, 0x22FF, 0};
        fonts->AddFontFromFileTTF(letters_path, letters_height * scale, nullptr, ranges);
        return;
    }
    ImFontConfig config;
    config.SizePixels = 13.0f * scale;
    fonts->AddFontDefault(&config);
}

void set_keys(ImGuiIO &io)
{
    io.KeyMap[ImGuiKey_Tab] = INPUT_KEY_TAB;
    io.KeyMap[ImGuiKey_LeftArrow] = INPUT_KEY_LEFT;
    io.KeyMap[ImGuiKey_RightArrow] = INPUT_KEY_RIGHT;
    io.KeyMap[ImGuiKey_UpArrow] = INPUT_KEY_UP;
    io.KeyMap[ImGuiKey_DownArrow] = INPUT_KEY_DOWN;
    io.KeyMap[ImGuiKey_PageUp] = INPUT_KEY_PAGE_UP;
    io.KeyMap[ImGuiKey_PageDown] = INPUT_KEY_PAGE_DOWN;
    io.KeyMap[ImGuiKey_Home] = INPUT_KEY_HOME;
    io.KeyMap[ImGuiKey_End] = INPUT_KEY_END;
    io.KeyMap[ImGuiKey_Delete] = INPUT_KEY_DELETE;
    io.KeyMap[ImGuiKey_Backspace] = INPUT_KEY_BACKSPACE;
    io.KeyMap[ImGuiKey_Enter] = INPUT_KEY_ENTER;
    io.KeyMap[ImGuiKey_Escape] = INPUT_KEY_ESCAPE;
    io.KeyMap[ImGuiKey_Space] = ' ';
    const struct {
        ImGuiKey key;
        char letter;
    } letters[] = {{ImGuiKey_A, 'A'}, {ImGuiKey_C, 'C'}, {ImGuiKey_V, 'V'},
                   {ImGuiKey_X, 'X'}, {ImGuiKey_Y, 'Y'}, {ImGuiKey_Z, 'Z'}};
    for (const auto &each : letters) {
        io.KeyMap[each.key] = each.letter;
    }
}

const char *get_clipboard(void *user)
{
    return window_pasted(static_cast<struct window *>(user));
}

void set_clipboard(void *user, const char *text)
{
    window_copy(static_cast<struct window *>(user), text);
}

bool prepare(struct ui *ui, const struct ui_params *params)
{
    ImGuiIO &io = ImGui::GetIO();
    scale_now = (float)window_scale(params->window);
    choose_style(scale_now);
    choose_letters(scale_now);
    set_keys(io);
    io.IniFilename = ui->layout_path[0] != '\0' ? ui->layout_path : nullptr;
    io.LogFilename = nullptr;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
    io.GetClipboardTextFn = get_clipboard;
    io.SetClipboardTextFn = set_clipboard;
    io.ClipboardUserData = params->window;
    unsigned char *font = nullptr;
    int size[2];
    io.Fonts->GetTexDataAsAlpha8(&font, &size[0], &size[1]);
    ui->draw = ui_draw_create(window_context(params->window), font, size);
    if (ui->draw == nullptr) {
        return false;
    }
    io.Fonts->SetTexID((ImTextureID) const_cast<gl_texture *>(ui_draw_font(ui->draw)));
    return true;
}

void collect(struct ui *ui, const ImDrawData *data)
{
    ui->indices.clear();
    ui->corners.clear();
    for (int k = 0; k < data->CmdListsCount; k++) {
        const ImDrawList *list = data->CmdLists[k];
        ui->indices.insert(ui->indices.end(), list->IdxBuffer.begin(), list->IdxBuffer.end());
        ui->corners.insert(ui->corners.end(), list->VtxBuffer.begin(), list->VtxBuffer.end());
    }
}

lr_status draw_list(struct ui *ui, struct gl_target *target, const ImDrawData *data,
                    const ImDrawList *list, const int first[2])
{
    for (const ImDrawCmd &command : list->CmdBuffer) {
        const ImVec4 &clip = command.ClipRect;
        const struct ui_piece piece = {
            (const struct gl_texture *)command.GetTexID(),
            first[0] + (int)command.IdxOffset,
            (int)command.ElemCount,
            first[1] + (int)command.VtxOffset,
            {clip.x, clip.y, clip.z, clip.w},
            {data->DisplayPos.x, data->DisplayPos.y},
            {data->DisplaySize.x, data->DisplaySize.y},
        };
        const lr_status status = ui_draw_piece(ui->draw, target, &piece);
        if (status != LR_OK) {
            return status;
        }
    }
    return LR_OK;
}

lr_status draw_all(struct ui *ui, struct gl_target *target, const ImDrawData *data)
{
    static_assert(sizeof(ImDrawVert) == 20, "ui.vert reads five words a corner");
    collect(ui, data);
    const struct ui_batch batch = {ui->corners.data(), ui->indices.data(), (int)ui->corners.size(),
                                   (int)ui->indices.size()};
    lr_status status = ui_draw_load(ui->draw, &batch);
    int first[2] = {0, 0};
    for (int k = 0; k < data->CmdListsCount && status == LR_OK; k++) {
        status = draw_list(ui, target, data, data->CmdLists[k], first);
        first[0] += data->CmdLists[k]->IdxBuffer.Size;
        first[1] += data->CmdLists[k]->VtxBuffer.Size;
    }
    return status;
}

} // namespace

struct ui *ui_create(const struct ui_params *params, const lr_log *log)
{
    (void)log;
    struct ui *ui = new (std::nothrow) struct ui();
    if (ui == nullptr) {
        return nullptr;
    }
    ui->window = params->window;
    snprintf(ui->layout_path, sizeof(ui->layout_path), "%s",
             params->layout_path != nullptr ? params->layout_path : "");
    ImGui::CreateContext();
    if (!prepare(ui, params)) {
        ui_destroy(ui);
        return nullptr;
    }
    return ui;
}

void ui_destroy(struct ui *ui)
{
    if (ui != nullptr) {
        ImGui::DestroyContext();
        ui_draw_destroy(ui->draw);
        delete ui;
    }
}

void ui_take(struct ui *, const struct input_event *event)
{
    ImGuiIO &io = ImGui::GetIO();
    if (event->kind == INPUT_MOVE || event->kind == INPUT_BUTTON || event->kind == INPUT_SCROLL) {
        io.MousePos = ImVec2((float)event->at[0], (float)event->at[1]);
    }
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

bool ui_wants_mouse(const struct ui *)
{
    return ImGui::GetIO().WantCaptureMouse;
}

bool ui_wants_keys(const struct ui *)
{
    return ImGui::GetIO().WantTextInput;
}

void ui_begin(struct ui *ui, double seconds)
{
    int size[2];
    window_size(ui->window, size);
    ImGuiIO &io = ImGui::GetIO();
    io.DisplaySize = ImVec2((float)size[0], (float)size[1]);
    io.DeltaTime = seconds > 1e-6 ? (float)seconds : 1e-6f;
    ImGui::NewFrame();
}

lr_status ui_end(struct ui *ui, struct gl_target *target)
{
    ImGui::Render();
    return draw_all(ui, target, ImGui::GetDrawData());
}

// --- panels ---

bool ui_panel(const char *label, const struct ui_place *place, bool *is_open)
{
    ImGuiWindowFlags flags = ImGuiWindowFlags_NoFocusOnAppearing;
    const ImGuiCond when = place->is_fixed ? ImGuiCond_Always : ImGuiCond_FirstUseEver;
    if (place->is_fixed) {
        flags |= ImGuiWindowFlags_NoCollapse | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoResize |
                 ImGuiWindowFlags_NoSavedSettings;
    }
    if (place->is_bare) {
        flags |= ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoScrollbar;
    }
    if (place->has_ground) {
        flags |= ImGuiWindowFlags_NoBackground;
    }
    ImGui::SetNextWindowPos(pixels(place->at), when);
    ImGui::SetNextWindowSize(pixels(place->size), when);
    return ImGui::Begin(label, is_open, flags);
}

void ui_panel_end(void)
{
    ImGui::End();
}

double ui_text_height(const char *text, double width)
{
    const float wrap = (float)(width > 1.0 ? width : 1.0) * scale_now;
    return (double)(ImGui::CalcTextSize(text, nullptr, false, wrap).y / scale_now);
}

void ui_screen(double size[2])
{
    size[0] = (double)(ImGui::GetIO().DisplaySize.x / scale_now);
    size[1] = (double)(ImGui::GetIO().DisplaySize.y / scale_now);
}

bool ui_section(const char *label, bool is_open_first)
{
    return ImGui::CollapsingHeader(label, is_open_first ? ImGuiTreeNodeFlags_DefaultOpen : 0);
}

bool ui_tabs(const char *label)
{
    return ImGui::BeginTabBar(label);
}

bool ui_tab(const char *label, bool wants_it)
{
    return ImGui::BeginTabItem(label, nullptr, wants_it ? ImGuiTabItemFlags_SetSelected : 0);
}

void ui_tab_end(void)
{
    ImGui::EndTabItem();
}

void ui_tabs_end(void)
{
    ImGui::EndTabBar();
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
    ImGui::TextColoredV(tone_colour(tone), format, list);
    ImGui::PopTextWrapPos();
    va_end(list);
}

void ui_hint(const char *format, ...)
{
    if (ImGui::IsItemHovered()) {
        va_list list;
        va_start(list, format);
        ImGui::SetTooltipV(format, list);
        va_end(list);
    }
}

void ui_tooltip(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    ImGui::SetTooltipV(format, list);
    va_end(list);
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
    ImGui::Dummy(ImVec2(0.0f, (float)height * scale_now));
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
    ImGui::TextColored(tone_colour(UI_DIM), "%s", name);
    ImGui::TableNextColumn();
    ImGui::TextV(format, list);
    va_end(list);
}

// --- widgets ---

bool ui_button(const char *label, bool is_enabled)
{
    ImGui::BeginDisabled(!is_enabled);
    const bool pressed = ImGui::Button(label);
    ImGui::EndDisabled();
    return pressed;
}

bool ui_check(const char *label, bool *value)
{
    return ImGui::Checkbox(label, value);
}

bool ui_slide(const char *label, int *value, const int range[2])
{
    return ImGui::SliderInt(label, value, range[0], range[1], "%d", ImGuiSliderFlags_AlwaysClamp);
}

bool ui_slide_real(const char *label, double *value, const double range[2])
{
    return ImGui::SliderScalar(label, ImGuiDataType_Double, value, &range[0], &range[1], "%.4g",
                               ImGuiSliderFlags_AlwaysClamp);
}

bool ui_choose(const char *label, int *value, const char *const *names, int count)
{
    return ImGui::Combo(label, value, names, count);
}

bool ui_radio(const char *label, int *value, int mine)
{
    return ImGui::RadioButton(label, value, mine);
}

bool ui_item(const char *label, bool is_chosen)
{
    return ImGui::Selectable(label, is_chosen);
}

bool ui_reals(const char *label, double *values, int count)
{
    ImGui::InputScalarN(label, ImGuiDataType_Double, values, count, nullptr, nullptr, "%.5g");
    return ImGui::IsItemDeactivatedAfterEdit();
}

bool ui_integers(const char *label, int *values, int count)
{
    ImGui::InputScalarN(label, ImGuiDataType_S32, values, count);
    return ImGui::IsItemDeactivatedAfterEdit();
}

bool ui_write(const char *label, char *text, size_t size)
{
    return ImGui::InputText(label, text, size, ImGuiInputTextFlags_EnterReturnsTrue);
}

void ui_progress(double share, const char *text)
{
    ImGui::ProgressBar((float)share, ImVec2(-1.0f, 0.0f), text);
}

void ui_curve(const char *label, const struct ui_curve *curve)
{
    const bool is_free = curve->low == 0.0 && curve->high == 0.0;
    const float low = is_free ? FLT_MAX : (float)curve->low;
    const float high = is_free ? FLT_MAX : (float)curve->high;
    const float width =
        curve->size[0] > 0.0 ? (float)curve->size[0] * scale_now : ImGui::GetContentRegionAvail().x;
    const float height = (curve->size[1] > 0.0 ? (float)curve->size[1] : 80.0f) * scale_now;
    ImGui::PlotLines(label, curve->values, curve->count, 0, curve->overlay, low, high,
                     ImVec2(width, height));
}

struct ui_touch ui_image(const char *label, const struct ui_image *image)
{
    const ImVec2 corner = ImGui::GetCursorScreenPos(), size = pixels(image->size);
    const float top = image->is_top_down ? 0.0f : 1.0f;
    ImGui::InvisibleButton(label,
                           ImVec2(size.x > 1.0f ? size.x : 1.0f, size.y > 1.0f ? size.y : 1.0f));
    ImGui::GetWindowDrawList()->AddImage((ImTextureID) const_cast<gl_texture *>(image->texture),
                                         corner, ImVec2(corner.x + size.x, corner.y + size.y),
                                         ImVec2(0.0f, top), ImVec2(1.0f, 1.0f - top));
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

static ImVec2 on_image(const double at[2])
{
    return ImVec2(image_corner.x + (float)at[0] * image_size.x,
                  image_corner.y + (float)at[1] * image_size.y);
}

void ui_mark_line(const double from[2], const double to[2], uint32_t colour)
{
    ImGui::GetWindowDrawList()->AddLine(on_image(from), on_image(to), packed(colour));
}

void ui_mark_box(const double from[2], const double to[2], uint32_t colour)
{
    ImGui::GetWindowDrawList()->AddRect(on_image(from), on_image(to), packed(colour));
}

void ui_label(const double at[2], uint32_t colour, const char *text)
{
    ImDrawList *list = ImGui::GetBackgroundDrawList();
    const ImVec2 place = pixels(at);
    list->AddText(ImVec2(place.x + 1.0f, place.y + 1.0f), IM_COL32(0, 0, 0, 200), text);
    list->AddText(place, packed(colour), text);
}

bool ui_ask(const struct ui_question *question, int *answer)
{
    bool is_answered = false;
    if (!ImGui::IsPopupOpen(question->title)) {
        ImGui::OpenPopup(question->title);
    }
    if (ImGui::BeginPopupModal(question->title, nullptr, ImGuiWindowFlags_AlwaysAutoResize)) {
        ImGui::TextUnformatted(question->text);
        for (int k = 0; k < 3 && question->buttons[k] != nullptr; k++) {
            if (k > 0) {
                ImGui::SameLine();
            }
            if (ImGui::Button(question->buttons[k])) {
                *answer = k;
                is_answered = true;
                ImGui::CloseCurrentPopup();
            }
        }
        ImGui::EndPopup();
    }
    return is_answered;
}
