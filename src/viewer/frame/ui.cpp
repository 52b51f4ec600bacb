// SPDX-License-Identifier: Apache-2.0
// Copyright The LORaster authors
//
// Its context, its input and its drawing; widgets are in ui_widgets.cpp and ui_plot.cpp.
//
// Of the backends that come with Dear ImGui, imgui_impl_opengl3 draws, with a window and without.
// imgui_impl_glfw is not used: it takes mouse and clock from GLFW in each frame, so it needs a window
// that is seen, and drops what scripts do. ui_take and set_keys serve people and scripts alike.
#include "viewer/frame/ui.h"

#include "viewer/frame/ui_private.h"
#include "viewer/frame/window.h"

#include <backends/imgui_impl_opengl3.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <imgui.h>
#include <new>

struct ui {
    struct window *window;
    char layout_path[1024];
};

namespace
{

const char *const letters_path = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf";
const float letters_height = 14.0f;

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

void prepare(struct ui *ui, const struct ui_params *params)
{
    ImGuiIO &io = ImGui::GetIO();
    ui_scale = (float)window_scale(params->window);
    choose_style(ui_scale);
    choose_letters(ui_scale);
    set_keys(io);
    io.IniFilename = ui->layout_path[0] != '\0' ? ui->layout_path : nullptr;
    io.LogFilename = nullptr;
    io.GetClipboardTextFn = get_clipboard;
    io.SetClipboardTextFn = set_clipboard;
    io.ClipboardUserData = params->window;
}

} // namespace

float ui_scale = 1.0f;

struct ui *ui_create(const struct ui_params *params, const lr_log *log)
{
    struct ui *ui = new (std::nothrow) struct ui();
    if (ui == nullptr) {
        return nullptr;
    }
    ui->window = params->window;
    snprintf(ui->layout_path, sizeof(ui->layout_path), "%s",
             params->layout_path != nullptr ? params->layout_path : "");
    ImGui::CreateContext();
    prepare(ui, params);
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
        if (ImGui::GetIO().BackendRendererUserData != nullptr) {
            ImGui_ImplOpenGL3_Shutdown();
        }
        ImGui::DestroyContext();
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
    ImGui_ImplOpenGL3_NewFrame();
    ImGui::NewFrame();
}

lr_status ui_end(struct ui *ui, struct gl_target *target)
{
    ImGui::Render();
    if (target == nullptr) {
        return gl_context_check(window_context(ui->window), "panels");
    }
    // It puts back what it changes, as gl/pass.h wants it, and says nothing of what fails: the driver
    // is asked.
    glBindFramebuffer(GL_FRAMEBUFFER, target->name);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    return gl_context_check(window_context(ui->window), "panels");
}
