/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Windows on the screen, made by GLFW, and invisible surfaces. */
#include "viewer/frame/window.h"

#include "base/log.h"
#include "base/mem.h"
#include "gl/resource.h"

#include <GLFW/glfw3.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* --- events --- */

/* Adds an event to the ring buffer. Consecutive moves are merged. If the buffer is full, the event is dropped. */
static void add_event(struct window *window, const struct input_event *event)
{
    struct input_event *last = &window->events[(window->first + window->count + WINDOW_EVENTS - 1) % WINDOW_EVENTS];
    if (window->count > 0 && event->kind == INPUT_MOVE && last->kind == INPUT_MOVE)
        *last = *event;
    else if (window->count < WINDOW_EVENTS)
        window->events[(window->first + window->count++) % WINDOW_EVENTS] = *event;
}

bool window_next(struct window *window, struct input_event *event)
{
    window_wait(window, 0.0);
    if (window->count == 0) return false;
    *event = window->events[window->first];
    window->first = (window->first + 1) % WINDOW_EVENTS;
    window->count--;
    return true;
}

void window_wait(struct window *window, double seconds)
{
    const struct timespec length = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
    if (window->count > 0) return;
    if (window->handle == NULL && seconds > 0.0)
        nanosleep(&length, NULL);
    else if (window->handle != NULL && seconds > 0.0)
        glfwWaitEventsTimeout(seconds);
    else if (window->handle != NULL)
        glfwPollEvents();
}

void window_push(struct window *window, const struct input_event *event)
{
    const int size[2] = {(int)event->at[0], (int)event->at[1]};
    if (event->kind != INPUT_SIZE) {
        add_event(window, event);
    } else if (window->handle != NULL) {
        int units[2], wanted[2] = {size[0], size[1]};
        glfwGetWindowSize(window->handle, &units[0], &units[1]);
        for (int k = 0; k < 2; k++) /* high-density screens have several pixels per unit */
            if (window->size[k] > 0 && units[k] > 0)
                wanted[k] = (int)((double)size[k] * units[k] / window->size[k] + 0.5);
        glfwSetWindowSize(window->handle, wanted[0], wanted[1]);
    } else {
        window->size[0] = size[0];
        window->size[1] = size[1];
        add_event(window, &(struct input_event){.kind = INPUT_SIZE});
    }
}

/* --- the surface --- */

void window_show(struct window *window, const struct gl_target *target)
{
    if (window->handle != NULL) {
        gl_target_show(target, 0);
        glfwSwapBuffers(window->handle);
    }
}

void window_copy(struct window *window, const char *text)
{
    if (window->handle != NULL)
        glfwSetClipboardString(window->handle, text);
    else
        snprintf(window->clipboard, sizeof(window->clipboard), "%s", text);
}

const char *window_pasted(struct window *window)
{
    const char *text = window->handle != NULL ? glfwGetClipboardString(window->handle) : window->clipboard;
    return text != NULL ? text : "";
}

static void *watch_screen(void *user)
{
    struct screen_watch *watch = user;
    struct pollfd ends[2] = {{.fd = watch->screen}, {.fd = watch->ends[0]}};
    while (poll(ends, 2, -1) < 0 && errno == EINTR) {
    }
    if (ends[1].revents == 0 && (ends[0].revents & (POLLHUP | POLLERR)) != 0) {
        /* The program ends at once, without flushing or freeing, because other threads may hold locks. No output
         * file is left half written: an output file gets its name only when it is complete. */
        static const char sentence[] = "loraster: error: the screen that the window was on has gone "
                                       "away: start the viewer again\n";
        (void)!write(STDERR_FILENO, sentence, sizeof(sentence) - 1);
        _exit(1);
    }
    return NULL;
}

void screen_watch_start(struct screen_watch *watch, int screen)
{
    *watch = (struct screen_watch){.screen = screen};
    if (screen < 0 || pipe(watch->ends) != 0) return;
    for (int k = 0; k < 2; k++) fcntl(watch->ends[k], F_SETFD, FD_CLOEXEC);
    watch->is_running = pthread_create(&watch->thread, NULL, watch_screen, watch) == 0;
    if (!watch->is_running) {
        close(watch->ends[0]);
        close(watch->ends[1]);
    }
}

void screen_watch_stop(struct screen_watch *watch)
{
    if (watch->is_running) {
        close(watch->ends[1]);
        pthread_join(watch->thread, NULL);
        close(watch->ends[0]);
        watch->is_running = false;
    }
}

/* --- GLFW's callbacks --- */

static unsigned modifiers_of(int mods)
{
    return (mods & GLFW_MOD_SHIFT ? INPUT_SHIFT : 0u) | (mods & GLFW_MOD_CONTROL ? INPUT_CONTROL : 0u) |
           (mods & GLFW_MOD_ALT ? INPUT_ALT : 0u);
}

/* Converts the position from screen units to pixels; high-density screens have several pixels per unit. */
static void on_move(GLFWwindow *handle, double x, double y)
{
    struct window *window = glfwGetWindowUserPointer(handle);
    int units[2];
    glfwGetWindowSize(handle, &units[0], &units[1]);
    window->at[0] = units[0] > 0 ? x * window->size[0] / units[0] : x;
    window->at[1] = units[1] > 0 ? y * window->size[1] / units[1] : y;
    add_event(window, &(struct input_event){.kind = INPUT_MOVE, .at = {window->at[0], window->at[1]}});
}

static void on_button(GLFWwindow *handle, int button, int action, int mods)
{
    struct window *window = glfwGetWindowUserPointer(handle);
    if (button < INPUT_NUM_BUTTONS) {
        add_event(window, &(struct input_event){.kind = INPUT_BUTTON,
                                                .at = {window->at[0], window->at[1]},
                                                .button = button,
                                                .is_down = action == GLFW_PRESS,
                                                .modifiers = modifiers_of(mods)});
    }
}

static void on_scroll(GLFWwindow *handle, double x, double y)
{
    struct window *window = glfwGetWindowUserPointer(handle);
    const bool has_control = glfwGetKey(handle, GLFW_KEY_LEFT_CONTROL) == GLFW_PRESS ||
                             glfwGetKey(handle, GLFW_KEY_RIGHT_CONTROL) == GLFW_PRESS;
    add_event(window, &(struct input_event){.kind = INPUT_SCROLL,
                                            .at = {window->at[0], window->at[1]},
                                            .by = {x, y},
                                            .modifiers = has_control ? INPUT_CONTROL : 0u});
}

static void on_key(GLFWwindow *handle, int key, int scancode, int action, int mods)
{
    (void)scancode;
    static const struct {
        int glfw, own;
    } keys[] = {
        {GLFW_KEY_ESCAPE, INPUT_KEY_ESCAPE},
        {GLFW_KEY_ENTER, INPUT_KEY_ENTER},
        {GLFW_KEY_KP_ENTER, INPUT_KEY_ENTER},
        {GLFW_KEY_TAB, INPUT_KEY_TAB},
        {GLFW_KEY_BACKSPACE, INPUT_KEY_BACKSPACE},
        {GLFW_KEY_DELETE, INPUT_KEY_DELETE},
        {GLFW_KEY_LEFT, INPUT_KEY_LEFT},
        {GLFW_KEY_RIGHT, INPUT_KEY_RIGHT},
        {GLFW_KEY_UP, INPUT_KEY_UP},
        {GLFW_KEY_DOWN, INPUT_KEY_DOWN},
        {GLFW_KEY_PAGE_UP, INPUT_KEY_PAGE_UP},
        {GLFW_KEY_PAGE_DOWN, INPUT_KEY_PAGE_DOWN},
        {GLFW_KEY_HOME, INPUT_KEY_HOME},
        {GLFW_KEY_END, INPUT_KEY_END},
        {GLFW_KEY_F1, INPUT_KEY_F1},
    };
    int own = key >= 32 && key < 128 ? key : 0;
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
        if (keys[k].glfw == key) own = keys[k].own;
    if (own != 0) {
        add_event(glfwGetWindowUserPointer(handle), &(struct input_event){.kind = INPUT_KEY,
                                                                          .key = own,
                                                                          .is_down = action != GLFW_RELEASE,
                                                                          .modifiers = modifiers_of(mods)});
    }
}

static void on_text(GLFWwindow *handle, unsigned int code)
{
    add_event(glfwGetWindowUserPointer(handle), &(struct input_event){.kind = INPUT_TEXT, .code = code});
}

static void on_drop(GLFWwindow *handle, int count, const char **paths)
{
    for (int k = 0; k < count; k++) {
        struct input_event event = {.kind = INPUT_DROP};
        snprintf(event.path, sizeof(event.path), "%s", paths[k]);
        add_event(glfwGetWindowUserPointer(handle), &event);
    }
}

static void on_size(GLFWwindow *handle, int width, int height)
{
    struct window *window = glfwGetWindowUserPointer(handle);
    window->size[0] = width;
    window->size[1] = height;
    add_event(window, &(struct input_event){.kind = INPUT_SIZE});
}

static void on_scale(GLFWwindow *handle, float x, float y)
{
    struct window *window = glfwGetWindowUserPointer(handle);
    (void)y;
    window->scale = (double)x;
    add_event(window, &(struct input_event){.kind = INPUT_SIZE});
}

static void on_close(GLFWwindow *handle)
{
    add_event(glfwGetWindowUserPointer(handle), &(struct input_event){.kind = INPUT_CLOSE});
}

/* --- opening and closing --- */

static const char *last_error(void)
{
    const char *text = NULL;
    glfwGetError(&text);
    return text != NULL ? text : "no reason is given";
}

/* EGL makes the context. If EGL fails, the system's own interface (GLX, WGL) makes it. Each interface is tried
 * twice: first with driver reports of resets, then without them. */
struct window *window_open(const struct window_params *params)
{
    static const int apis[] = {GLFW_EGL_CONTEXT_API, GLFW_NATIVE_CONTEXT_API};
    if (!glfwInit()) {
        lr_error(params->log, LR_NO_DEVICE,
                 "there is no screen to open a window on (%s): log in on a desktop, set DISPLAY, or "
                 "run without a window (--no-window --script FILE)",
                 last_error());
        return NULL;
    }
    struct window *window = lr_alloc(1, sizeof(*window), "a window", params->log);
    if (window == NULL) {
        glfwTerminate();
        return NULL;
    }
    GLFWwindow *handle = NULL;
    for (int k = 0; k < 4 && handle == NULL; k++) {
        glfwDefaultWindowHints();
        glfwWindowHint(GLFW_CONTEXT_CREATION_API, apis[k / 2]);
        glfwWindowHint(GLFW_CONTEXT_ROBUSTNESS, k % 2 == 0 ? GLFW_LOSE_CONTEXT_ON_RESET : GLFW_NO_ROBUSTNESS);
        glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 4);
        glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 5);
        glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
        glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
        glfwWindowHint(GLFW_DEPTH_BITS, 0);
        glfwWindowHintString(GLFW_X11_CLASS_NAME, "loraster");
        handle = glfwCreateWindow(params->size[0], params->size[1], params->title, NULL, NULL);
    }
    window->handle = handle;
    window->is_seen = handle != NULL;
    if (handle == NULL) {
        lr_error(params->log, LR_NO_DEVICE,
                 "no window with OpenGL 4.5 can be opened (%s): " GL_CONTEXT_REMEDY
                 "; loraster info lists what this machine offers. Where it lists a device that can be used and only "
                 "the screen has none, loraster view --no-window --script FILE draws without a window",
                 last_error());
        goto failed;
    }

    float scale[2];
    glfwMakeContextCurrent(handle);
    glfwSwapInterval(1);
    glfwGetFramebufferSize(handle, &window->size[0], &window->size[1]);
    glfwGetWindowContentScale(handle, &scale[0], &scale[1]);
    window->scale = (double)scale[0];
    window->ctx = gl_context_adopt(&(struct gl_context_params){.log = params->log});
    if (window->ctx == NULL) goto failed;

    glfwSetWindowUserPointer(handle, window);
    glfwSetCursorPosCallback(handle, on_move);
    glfwSetMouseButtonCallback(handle, on_button);
    glfwSetScrollCallback(handle, on_scroll);
    glfwSetKeyCallback(handle, on_key);
    glfwSetCharCallback(handle, on_text);
    glfwSetDropCallback(handle, on_drop);
    glfwSetFramebufferSizeCallback(handle, on_size);
    glfwSetWindowContentScaleCallback(handle, on_scale);
    glfwSetWindowCloseCallback(handle, on_close);

    /* The descriptor of the connection to an X server. The descriptor stays -1 on other systems. GLFW has
     * glfwGetX11Display only if GLFW was built for X. GLFW has then loaded Xlib. */
    void *(*get_display)(void);
    int (*get_number)(void *display);
    void *const program = dlopen(NULL, RTLD_LAZY);
    int connection = -1;
    if (program != NULL) {
        *(void **)&get_display = dlsym(program, "glfwGetX11Display");
        *(void **)&get_number = dlsym(program, "XConnectionNumber");
        void *const display = get_display != NULL && get_number != NULL ? get_display() : NULL;
        connection = display != NULL ? get_number(display) : -1;
        dlclose(program);
    }
    screen_watch_start(&window->watch, connection);
    if (gl_context_make_current(window->ctx) == LR_OK) return window;

failed:
    screen_watch_stop(&window->watch);
    if (handle != NULL) glfwDestroyWindow(handle);
    glfwTerminate();
    free(window);
    return NULL;
}

struct window *window_open_unseen(const struct window_params *params)
{
    struct window *window = lr_alloc(1, sizeof(*window), "a surface to draw on", params->log);
    if (window == NULL) return NULL;
    window->size[0] = params->size[0];
    window->size[1] = params->size[1];
    window->scale = 1.0;
    window->ctx = gl_context_create(&(struct gl_context_params){.device = params->device, .log = params->log});
    if (window->ctx == NULL || gl_context_make_current(window->ctx) != LR_OK) {
        gl_context_destroy(window->ctx);
        free(window);
        return NULL;
    }
    return window;
}

void window_close(struct window *window)
{
    if (window == NULL) return;
    screen_watch_stop(&window->watch);
    if (window->ctx != NULL) gl_context_release(window->ctx);
    gl_context_destroy(window->ctx);
    if (window->handle != NULL) {
        glfwDestroyWindow(window->handle);
        glfwTerminate();
    }
    free(window);
}
