// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Panels, text and widgets.
#include "viewer/frame/ui.h"
#include "viewer/frame/ui_private.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

static bool is_in_table; // columns fit their text, which must not wrap at their width

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
    } else {
        ImGui::SetNextWindowBgAlpha(1.0f); // text of what it covers would show through
    }
    ImGui::SetNextWindowPos(ui_pixels(place->at), when);
    ImGui::SetNextWindowSize(ui_pixels(place->size), when);
    return ImGui::Begin(label, is_open, flags);
}

void ui_panel_end(void)
{
    ImGui::End();
}

double ui_text_height(const char *text, double width)
{
    const float wrap = (float)(width > 1.0 ? width : 1.0) * ui_scale;
    return (double)(ImGui::CalcTextSize(text, nullptr, false, wrap).y / ui_scale);
}

void ui_screen(double size[2])
{
    size[0] = (double)(ImGui::GetIO().DisplaySize.x / ui_scale);
    size[1] = (double)(ImGui::GetIO().DisplaySize.y / ui_scale);
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

bool ui_row(const char *label, bool is_chosen)
{
    return ImGui::Selectable(label, is_chosen, ImGuiSelectableFlags_SpanAllColumns);
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
