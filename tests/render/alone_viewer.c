/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * Single stages of the viewer's scene. Outputs of a vertex shader are captured before anything is drawn. A fragment
 * shader gets its inputs from a vertex shader of the test, which draws a rectangle. Both are compared with plain
 * geometry and closed forms. */
#include "device.h"

#include "base/vec.h"

/* --- a stage together with the test's own other stage --- */

/* The inputs of stages: the blocks of shaders/viewer/view.glsl and view_modules.glsl. */
struct scene {
    struct view {
        float clip_of_world[16], eye[4], low_mm[4], high_mm[4], overlay[4];
        int32_t shown[4];
        float steps[4], other_low_mm[4], other_high_mm[4], region_mm[4], region_half_mm[4], mixing[4];
        int32_t style[4];
    } view;
    const struct gl_buffer *buffers[3];
    const struct gl_texture *textures[6];
};

struct module_words {
    float centre[4], u[4], v[4], normal[4], face[4];
};

static void end_object(void *object)
{
    GLuint *names = object;
    glDeleteProgram(names[0]);
    glDeleteVertexArrays(1, &names[1]);
    glDeleteBuffers(2, &names[2]);
    free(names);
}

/* vertex, fragment: name of a shader, or the text of a shader of the test. fragment NULL: the outputs `captured` are
 * captured. Returns names of the program, of a vertex array without attributes, and of buffers for the block and for
 * captured outputs. */
static const GLuint *make_program(const char *vertex, const char *fragment, const char *const *captured, int count)
{
    const char *const stages[2] = {vertex, fragment};
    GLuint *names = calloc(4, sizeof(*names));
    GLint is_linked = 0;
    char said[1000] = "";
    assert_non_null(names);
    keep_object(names, end_object);
    names[0] = glCreateProgram();
    glCreateVertexArrays(1, &names[1]);
    glCreateBuffers(2, &names[2]);
    for (int k = 0; k < 2 && stages[k] != NULL; k++) {
        struct gl_shader_source source = {0};
        const bool is_name = strstr(stages[k], "#version") == NULL;
        if (is_name) device_check(gl_shader_source_init(&source, stages[k], &stage_log.log) == LR_OK);
        const GLchar *text = is_name ? source.text : stages[k];
        const GLuint shader = glCreateShader(k == 0 ? GL_VERTEX_SHADER : GL_FRAGMENT_SHADER);
        glShaderSource(shader, 1, &text, NULL);
        glCompileShader(shader);
        glGetShaderInfoLog(shader, sizeof(said), NULL, said);
        glAttachShader(names[0], shader);
        glDeleteShader(shader);
        gl_shader_source_finish(&source);
    }
    if (captured != NULL) glTransformFeedbackVaryings(names[0], count, captured, GL_INTERLEAVED_ATTRIBS);
    glLinkProgram(names[0]);
    glGetProgramiv(names[0], GL_LINK_STATUS, &is_linked);
    if (!is_linked) fail_msg("(program %s, %s) %s", vertex, fragment, said);
    return names;
}

static void end_target(void *target)
{
    gl_target_destroy(target);
}

enum { WIDTH = 30, HEIGHT = 21 };

/* Returns the target of the drawing, filled with zeros. */
static const struct gl_target *begin_scene(const GLuint *names, const struct scene *scene)
{
    struct gl_target *target = gl_target_create(
        stage_ctx, &(struct gl_target_params){
                       .label = "pixels", .width = WIDTH, .height = HEIGHT, .colour_formats = {GL_RGBA32F}});
    device_check(target != NULL);
    keep_object(target, end_target);
    gl_target_clear(target, NULL);
    glBindFramebuffer(GL_FRAMEBUFFER, target->name);
    glViewport(0, 0, WIDTH, HEIGHT);
    glNamedBufferData(names[2], sizeof(scene->view), &scene->view, GL_STATIC_DRAW);
    glBindBufferBase(GL_UNIFORM_BUFFER, 0, names[2]);
    for (GLuint k = 0; k < 3; k++)
        if (scene->buffers[k] != NULL) glBindBufferBase(GL_SHADER_STORAGE_BUFFER, k, scene->buffers[k]->name);
    for (GLuint k = 0; k < 6; k++)
        if (scene->textures[k] != NULL) glBindTextureUnit(k, scene->textures[k]->name);
    glUseProgram(names[0]);
    glBindVertexArray(names[1]);
    return target;
}

static void end_scene(void)
{
    glBindFramebuffer(GL_FRAMEBUFFER, 0);
    glBindVertexArray(0);
    glUseProgram(0);
    for (GLuint k = 0; k < 6; k++) glBindTextureUnit(k, 0);
    for (GLuint k = 0; k < 3; k++) glBindBufferBase(GL_SHADER_STORAGE_BUFFER, k, 0);
    glBindBufferBase(GL_UNIFORM_BUFFER, 0, 0);
    device_check(glGetError() == GL_NO_ERROR);
}

/* Returns gl_Position, four words, and `words` further words for each vertex [instances][vertices]. */
static const float *capture(const char *shader, const struct scene *scene, const char *const *outputs, int words,
                            const int count[2])
{
    const char *captured[4] = {"gl_Position"};
    int num_captured = 1;
    for (; outputs[num_captured - 1] != NULL; num_captured++) captured[num_captured] = outputs[num_captured - 1];
    const GLuint *names = make_program(shader, NULL, captured, num_captured);
    const int64_t all = (int64_t)count[0] * count[1] * (4 + words);
    float *read = kept_floats(all);
    begin_scene(names, scene);
    glNamedBufferData(names[3], all * 4, NULL, GL_STATIC_READ);
    glBindBufferBase(GL_TRANSFORM_FEEDBACK_BUFFER, 0, names[3]);
    glEnable(GL_RASTERIZER_DISCARD);
    glBeginTransformFeedback(GL_POINTS);
    glDrawArraysInstanced(GL_POINTS, 0, count[0], count[1]);
    glEndTransformFeedback();
    glDisable(GL_RASTERIZER_DISCARD);
    glBindBufferBase(GL_TRANSFORM_FEEDBACK_BUFFER, 0, 0);
    end_scene();
    glGetNamedBufferSubData(names[3], 0, all * 4, read);
    return read;
}

/* Draws a rectangle over WIDTH x HEIGHT pixels and returns the pixels as [HEIGHT][WIDTH][4]; 0: no fragment. `outputs`
 * declares the inputs of the fragment shader, and sets them from vec2 corner, 0 .. 1, and vec4 given. */
static const float (*paint(const char *shader, const struct scene *scene, const char *const outputs[2],
                           const float given[4]))[4]
{
    char text[1000];
    snprintf(text, sizeof(text),
             "#version 450 core\nlayout(location = 9) uniform vec4 given;\n%s\nvoid main()\n{\n"
             "vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1);\n%s\n"
             "gl_Position = vec4(2.0 * corner - 1.0, 0.0, 1.0);\n}\n",
             outputs[0], outputs[1]);
    const GLuint *names = make_program(text, shader, NULL, 0);
    float(*pixels)[4] = kept(WIDTH * HEIGHT, sizeof(*pixels));
    const struct gl_target *target = begin_scene(names, scene);
    glProgramUniform4fv(names[0], 9, 1, given);
    glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
    end_scene();
    device_check(gl_texture_read(target->colours[0], NULL, pixels) == LR_OK);
    return (const float(*)[4])pixels;
}

/* --- expected results --- */

static void expect_words(const float *found, const double *wanted, int count, const char *what)
{
    for (int k = 0; k < count; k++)
        if (!(fabs((double)found[k] - wanted[k]) <= 3e-6 * (1 + fabs(wanted[k])))) /* a few roundings of 6e-8 */
            fail_msg("%s: word %d is %.8g, not %.8g", what, k, (double)found[k], wanted[k]);
}

static uint64_t state = 5;

/* A box, an eye and a matrix, which is given column by column. */
static struct scene make_scene(void)
{
    struct scene scene = {.view = {.eye = {200, -50, 90},
                                   .low_mm = {-40, -20, 10, 1},
                                   .high_mm = {30, 60, 50, 5},
                                   .overlay = {0, 15.5f, 40.25f, 33},
                                   .shown = {0, 0, 0, 1}}};
    for (int k = 0; k < 16; k++) scene.view.clip_of_world[k] = (float)random_between(&state, -1, 1);
    return scene;
}

/* Checks gl_Position of a point, or of a point that is not drawn. Each of three products and sums is rounded to
 * 6e-8. */
static void expect_position(const struct scene *scene, const float *found, const double point[3], bool is_drawn)
{
    const float *m = scene->view.clip_of_world;
    for (int k = 0; k < 4; k++) {
        double wanted = is_drawn ? (double)m[12 + k] : k < 3 ? 2 : 1, size = 1;
        for (int j = 0; j < 3 && is_drawn; j++) {
            wanted += (double)m[4 * j + k] * point[j];
            size += fabs((double)m[4 * j + k] * point[j]);
        }
        if (!(fabs((double)found[k] - wanted) <= 1e-6 * size))
            fail_msg("position %d is %.8g, not %.8g", k, (double)found[k], wanted);
    }
}

enum { MODULES = 3 };

static const uint32_t module_colours[MODULES] = {0xff8040ff, 0x102030ff, 0x00ff7f00};

/* The last module has its back to the eye. */
static void make_modules(struct scene *scene, struct module_words modules[MODULES])
{
    for (int m = 0; m < MODULES; m++) {
        struct module_words *module = &modules[m];
        double u[3], v[3], normal[3], towards[3];
        for (int k = 0; k < 3; k++) {
            module->centre[k] = (float)random_between(&state, -60, 60);
            towards[k] = (double)scene->view.eye[k] - (double)module->centre[k];
            normal[k] = towards[k] * (m == 2 ? -1 : 1) + random_between(&state, -20, 20);
            u[k] = random_between(&state, -1, 1);
        }
        vec_normalise(normal);
        vec_cross(normal, u, v);
        vec_normalise(v);
        vec_cross(v, normal, u);
        for (int k = 0; k < 3; k++) {
            module->normal[k] = (float)normal[k];
            module->u[k] = (float)u[k];
            module->v[k] = (float)v[k];
            module->face[k] = (const float[3]){1, 1.5f, 10}[k];
        }
        module->centre[3] = (float)(3 + m);
        module->face[3] = 2;
        module->u[3] = 2;
        module->v[3] = 2.5f;
        module->normal[3] = (float)(10 * m);
    }
    scene->buffers[0] = device_buffer(MODULES * (int64_t)sizeof(*modules), modules);
    scene->buffers[1] = device_buffer(sizeof(module_colours), module_colours);
}

static double facing(const struct scene *scene, const struct module_words *module)
{
    double towards[3], cosine = 0;
    for (int k = 0; k < 3; k++) towards[k] = (double)scene->view.eye[k] - (double)module->centre[k];
    for (int k = 0; k < 3; k++) cosine += towards[k] * (double)module->normal[k] / vec_length(towards);
    return cosine;
}

/* A point of a module, given by its distances in millimetres from the middle of the front face, along u, along v and
 * inwards. */
static void module_point(const struct module_words *module, const double off[3], double point[3])
{
    for (int k = 0; k < 3; k++)
        point[k] = (double)module->centre[k] + off[0] * (double)module->u[k] + off[1] * (double)module->v[k] -
                   off[2] * (double)module->normal[k];
}

/* 0xRRGGBBAA as numbers from 0 to 1 */
static double channel(uint32_t colour, int k)
{
    return (colour >> (24 - 8 * k) & 255) / 255.0;
}

/* --- vertices --- */

static void test_lines_vert(void **context)
{
    enum { LINES = 65 };
    struct scene scene = make_scene();
    float lines[LINES][7];
    for (int k = 0; k < LINES; k++) {
        const uint32_t colour = 0x01020380u + 0x03050701u * (uint32_t)k;
        for (int j = 0; j < 6; j++) lines[k][j] = (float)random_between(&state, -90, 90);
        memcpy(&lines[k][6], &colour, 4);
    }
    scene.buffers[0] = device_buffer(sizeof(lines), lines);
    const float *found = capture("viewer/view_lines.vert", &scene, (const char *[]){"out_colour", NULL}, 4,
                                 (const int[2]){2 * LINES, 1});
    for (int k = 0; k < 2 * LINES; k++, found += 8) {
        double point[3], wanted[4];
        uint32_t colour;
        memcpy(&colour, &lines[k / 2][6], 4);
        for (int j = 0; j < 3; j++) point[j] = (double)lines[k / 2][3 * (k % 2) + j];
        for (int j = 0; j < 4; j++) wanted[j] = channel(colour, j);
        expect_position(&scene, found, point, true);
        expect_words(found + 4, wanted, 4, "colour");
    }
}

static void test_slice_vert(void **context)
{
    for (int axis = 0; axis < 3; axis++) {
        struct scene scene = make_scene();
        scene.view.shown[0] = axis;
        const float *found =
            capture("viewer/view_slice.vert", &scene, (const char *[]){"out_at", NULL}, 3, (const int[2]){4, 1});
        for (int corner = 0; corner < 4; corner++, found += 7) {
            const struct view *view = &scene.view;
            double point[3], place[3];
            for (int k = 0, bit = 0; k < 3; k++) {
                const double low = (double)view->low_mm[k], high = (double)view->high_mm[k];
                if (k == axis)
                    point[k] = (double)view->overlay[1 + k];
                else
                    point[k] = corner >> bit++ & 1 ? high : low;
                place[k] = (point[k] - low) / (high - low);
            }
            expect_position(&scene, found, point, true);
            expect_words(found + 4, place, 3, "place");
        }
    }
}

/* The six vertices of each face form two triangles that together use all four corners and have the face's area. */
static void test_volume_vert(void **context)
{
    for (int n = 0; n < 3; n++) {
        struct scene scene = make_scene();
        const double eyes[3][3] = {{200, -50, 90}, {0, 0, 30}, {-300, 60, 10}}; /* inside, or in two faces' planes */
        for (int k = 0; k < 3; k++) scene.view.eye[k] = (float)eyes[n][k];
        const float *found =
            capture("viewer/view_volume.vert", &scene, (const char *[]){"out_at", NULL}, 3, (const int[2]){36, 1});
        for (int face = 0; face < 6; face++) {
            const int axis = face / 2, a = (axis + 1) % 3, b = (axis + 2) % 3;
            const double low = (double)scene.view.low_mm[axis], high = (double)scene.view.high_mm[axis];
            const bool leaves = face % 2 == 1 ? eyes[n][axis] < high : eyes[n][axis] > low;
            double shares[6][2], area = 0;
            int seen = 0;
            for (int k = 0; k < 6; k++, found += 7) {
                const double at[3] = {(double)found[4], (double)found[5], (double)found[6]};
                const int axes[2] = {a, b};
                assert_close(at[axis], face % 2 == 1 ? high : low, 1e-6);
                for (int j = 0; j < 2; j++) {
                    const double from = (double)scene.view.low_mm[axes[j]], to = (double)scene.view.high_mm[axes[j]];
                    shares[k][j] = round((at[axes[j]] - from) / (to - from));
                    assert_close(at[axes[j]], from + shares[k][j] * (to - from), 1e-6);
                }
                seen |= 1 << (int)(shares[k][0] + 2 * shares[k][1]);
                expect_position(&scene, found, at, leaves);
            }
            for (int k = 0; k < 6; k += 3)
                area += 0.5 * fabs((shares[k + 1][0] - shares[k][0]) * (shares[k + 2][1] - shares[k][1]) -
                                   (shares[k + 2][0] - shares[k][0]) * (shares[k + 1][1] - shares[k][1]));
            /* The two triangles share a diagonal and have opposite third corners. */
            assert_true(seen == 15 && area == 1);
        }
    }
}

static void test_crystals_vert(void **context)
{
    struct scene scene = make_scene();
    struct module_words modules[MODULES];
    make_modules(&scene, modules);
    const float *found =
        capture("viewer/view_crystals.vert", &scene, (const char *[]){"out_module", "out_faces", "out_at", NULL}, 4,
                (const int[2]){4, MODULES});
    for (int k = 0; k < 4 * MODULES; k++, found += 8) {
        const struct module_words *module = &modules[k / 4];
        const double corner[2] = {k % 2, k / 2 % 2}, cosine = facing(&scene, module);
        const double count[2] = {(double)module->centre[3], (double)module->face[3]};
        const double off[3] = {(corner[0] - 0.5) * count[0] * (double)module->u[3],
                               (corner[1] - 0.5) * count[1] * (double)module->v[3], 0};
        const double wanted[3] = {cosine, corner[0] * count[0], corner[1] * count[1]};
        double point[3];
        int32_t number;
        module_point(module, off, point);
        memcpy(&number, &found[4], 4);
        assert_int_equal(number, k / 4);
        expect_position(&scene, found, point, cosine > 0);
        expect_words(found + 5, wanted, 3, "face");
    }
}

/* Each edge joins two corners that differ along one axis, and all twelve edges are drawn. */
static void test_boxes_vert(void **context)
{
    struct scene scene = make_scene();
    struct module_words modules[MODULES];
    make_modules(&scene, modules);
    const float *found =
        capture("viewer/view_boxes.vert", &scene, (const char *[]){"out_colour", NULL}, 3, (const int[2]){24, MODULES});
    for (int m = 0; m < MODULES; m++) {
        const double bright = m == 1 ? 1.6 : facing(&scene, &modules[m]) > 0 ? 0.9 : 0.35;
        int edges = 0;
        for (int edge = 0; edge < 12; edge++) {
            int corners[2] = {-1, -1};
            for (int end = 0; end < 2; end++, found += 7) {
                double wanted[3], nearest = INFINITY;
                for (int k = 0; k < 3; k++) wanted[k] = bright * channel(module_colours[m], k);
                expect_words(found + 4, wanted, 3, "colour");
                for (int corner = 0; corner < 8; corner++) {
                    const struct module_words *module = &modules[m];
                    const double half[2] = {0.5 * (double)(module->centre[3] * module->u[3]),
                                            0.5 * (double)(module->face[3] * module->v[3])};
                    const double off[3] = {corner & 1 ? half[0] : -half[0], corner & 2 ? half[1] : -half[1],
                                           corner & 4 ? (double)module->face[2] : 0};
                    double point[3], apart = 0;
                    module_point(module, off, point);
                    for (int k = 0; k < 4; k++) {
                        const float *c = scene.view.clip_of_world;
                        apart += fabs((double)found[k] - (double)c[k] * point[0] - (double)c[4 + k] * point[1] -
                                      (double)c[8 + k] * point[2] - (double)c[12 + k]);
                    }
                    corners[end] = apart < nearest ? corner : corners[end];
                    nearest = fmin(nearest, apart);
                }
                assert_true(nearest < 1e-3); /* single precision of some 100 mm; corners are millimetres apart */
            }
            const int along = corners[0] ^ corners[1], lowest = corners[0] & corners[1];
            assert_true(along == 1 || along == 2 || along == 4);
            edges |= 1 << (4 * (along >> 1) + (along == 1   ? lowest >> 1
                                               : along == 2 ? (lowest & 1) + (lowest >> 1 & 2)
                                                            : lowest));
        }
        assert_int_equal(edges, 0xfff);
    }
}

/* --- fragments --- */

static void expect_pixels(const float (*pixels)[4], const double wanted[4], const char *what)
{
    for (int k = 0; k < WIDTH * HEIGHT; k++) expect_words(pixels[k], wanted, 4, what);
}

static const float some_colour[4] = {0.25f, 0.5f, 0.75f, 0.125f};

static void test_flat_frag(void **context)
{
    const struct scene scene = make_scene();
    const char *const outputs[2] = {"layout(location = 0) flat out vec3 to;", "to = given.xyz;"};
    expect_pixels(paint("viewer/view_flat.frag", &scene, outputs, some_colour), (const double[4]){0.25, 0.5, 0.75, 1},
                  "colour");
}

static void test_lines_frag(void **context)
{
    const struct scene scene = make_scene();
    const char *const outputs[2] = {"layout(location = 0) flat out vec4 to;", "to = given;"};
    expect_pixels(paint("viewer/view_lines.frag", &scene, outputs, some_colour),
                  (const double[4]){0.25, 0.5, 0.75, 0.125}, "colour");
}

/* Colour maps of four colours; the first colour is for the lowest quarter of the values. */
enum { COLOURS = 4 };
static const float map[COLOURS][4] = {{0, 0, 1, 1}, {0, 1, 0, 1}, {1, 0, 0, 1}, {1, 1, 1, 1}};
static const float above_map[COLOURS][4] = {{0.5f, 0, 0, 1}, {0, 0.5f, 0, 1}, {0, 0, 0.5f, 1}, {0.25f, 0, 0.5f, 1}};

static const float *mapped(const float colours[COLOURS][4], double value)
{
    const double place = floor(value * COLOURS);
    return colours[(int)fmin(fmax(place, 0), COLOURS - 1)];
}

static struct gl_texture *map_texture(const float colours[COLOURS][4])
{
    return device_texture(GL_TEXTURE_2D, GL_RGBA32F, (const int[3]){COLOURS, 1, 1}, colours);
}

/* Values below, at and above both limits of the shown range, and overlays of strength 0, medium strength and more than
 * 1. */
static void test_slice_frag(void **context)
{
    const int size[3] = {5, 3, 2};
    const char *const outputs[2] = {"layout(location = 0) out vec3 to;", "to = vec3(corner, given.x);"};
    for (int n = 0; n < 4; n++) {
        struct scene scene = make_scene();
        float values[2 * 3 * 5], above[2 * 3 * 5];
        for (int k = 0; k < 2 * 3 * 5; k++) {
            values[k] = 0.75f + 0.17f * (float)k;
            above[k] = k % 4 == 0 ? 0.0f : 0.21f * (float)(k % 7);
        }
        scene.view.overlay[0] = n < 2 ? 0.0f : 1.0f;
        scene.textures[0] = map_texture(map);
        scene.textures[1] = device_texture(GL_TEXTURE_3D, GL_R32F, size, values);
        scene.textures[2] = device_texture(GL_TEXTURE_3D, GL_R32F, size, above);
        scene.textures[3] = map_texture(above_map);
        const float depth[4] = {n % 2 == 0 ? 0.25f : 0.75f};
        const float(*pixels)[4] = paint("viewer/view_slice.frag", &scene, outputs, depth);
        for (int k = 0; k < WIDTH * HEIGHT; k++) {
            const int x = (int)((k % WIDTH + 0.5) / WIDTH * size[0]), y = (int)((k / WIDTH + 0.5) / HEIGHT * size[1]);
            const int voxel = x + 5 * (y + 3 * (n % 2));
            const double value = ((double)values[voxel] - 1) / (5 - 1), share = (double)above[voxel];
            double wanted[4] = {0, 0, 0, 1};
            for (int j = 0; j < 3; j++) {
                const double cover = n < 2 || share == 0 ? 0 : 0.25 + 0.75 * fmin(share, 1);
                wanted[j] = (1 - cover) * (double)mapped(map, value)[j] + cover * (double)mapped(above_map, share)[j];
            }
            expect_words(pixels[k], wanted, 4, "slice");
        }
    }
}

/* An image's value at a place, 0 .. 1: the voxel's, the trilinear interpolation, or the largest one along z. */
static double value_of(const float *values, const int size[3], const double at[3], bool is_smooth, bool is_projected)
{
    double sum = 0, most = -INFINITY;
    for (int z = 0; z < size[2] && is_projected; z++)
        most = fmax(most, value_of(values, size, (double[3]){at[0], at[1], (z + 0.5) / size[2]}, is_smooth, false));
    for (int k = 0; k < 8; k++) {
        double weight = 1;
        int64_t voxel = 0, stride = 1;
        for (int axis = 0; axis < 3; axis++) {
            const double last = size[axis] - 1;
            const double place = fmin(fmax(at[axis] * size[axis] - 0.5, 0), last);
            const double from = is_smooth ? floor(place) : fmin(fmax(floor(at[axis] * size[axis]), 0), last);
            const double share = is_smooth ? place - from : 0;
            weight *= k >> axis & 1 ? share : 1 - share;
            voxel += stride * (int64_t)fmin(from + (k >> axis & 1), last);
            stride *= size[axis];
        }
        sum += weight * (double)values[voxel];
    }
    return is_projected ? most : sum;
}

/* Slices that are interpolated, projected, combined with a second image whose box is larger, or tinted in a region. */
static void test_slice_mixed(void **context)
{
    enum { FUSED = 1, DIFFERENCE, RATIO, CHECKERED };
    enum { BOX = 1, ELLIPSOID, EVERYWHERE };
    static const int size[3] = {5, 3, 2}, other_size[3] = {2, 2, 3};
    static const int32_t styles[][4] = {
        {0, 1, 0, 0}, {0, 0, 1, 0}, {FUSED, 0, 0, 0}, {FUSED, 1, 0, 0},     {FUSED, 0, 1, 0},     {DIFFERENCE},
        {RATIO},      {CHECKERED},  {0, 0, 0, BOX},   {0, 0, 0, ELLIPSOID}, {0, 0, 0, EVERYWHERE}};
    static const double tint[3] = {1, 0.62, 0.11};
    const char *const outputs[2] = {"layout(location = 0) out vec3 to;", "to = vec3(corner, given.x);"};
    const double depth = 0.75;
    float values[2 * 3 * 5], other[3 * 2 * 2];
    for (int k = 0; k < 2 * 3 * 5; k++) values[k] = 0.5f + 0.17f * (float)(k * 7 % 30);
    for (int k = 0; k < 3 * 2 * 2; k++) other[k] = 0.63f + 0.41f * (float)(k * 5 % 12);
    values[16] = 0.0f; /* has no ratio */
    for (int n = 0; n < length_of(styles); n++) {
        struct scene scene = make_scene();
        struct view *view = &scene.view;
        const int32_t *style = styles[n];
        /* no pixel's centre is at a face of the other image's voxels */
        const float corners[2][4] = {{-60, -31, 0, 0.25f}, {40, 70, 62, 4.5f}};
        const float region[2][4] = {{2, 15, 40, 1.1f}, {25, 30, 15, 4.6f}};
        memcpy(view->style, style, sizeof(view->style));
        memcpy(view->other_low_mm, corners[0], sizeof(corners[0]));
        memcpy(view->other_high_mm, corners[1], sizeof(corners[1]));
        memcpy(view->region_mm, region[0], sizeof(region[0]));
        memcpy(view->region_half_mm, region[1], sizeof(region[1]));
        view->mixing[0] = 0.3f;
        view->mixing[1] = 16;
        view->shown[0] = 2;
        view->overlay[0] = 0;
        scene.textures[0] = map_texture(map);
        scene.textures[1] = device_texture(GL_TEXTURE_3D, GL_R32F, size, values);
        scene.textures[4] = device_texture(GL_TEXTURE_3D, GL_R32F, other_size, other);
        scene.textures[5] = map_texture(above_map);
        const float(*pixels)[4] = paint("viewer/view_slice.frag", &scene, outputs, (const float[4]){(float)depth});
        for (int k = 0; k < WIDTH * HEIGHT; k++) {
            const double at[3] = {(k % WIDTH + 0.5) / WIDTH, (k / WIDTH + 0.5) / HEIGHT, depth};
            double there[3], off[3], wanted[4] = {0, 0, 0, 1};
            int field = 0;
            for (int c = 0; c < 3; c++) {
                const double low = (double)view->low_mm[c], high = (double)view->high_mm[c];
                const double mm = low + at[c] * (high - low), voxel = (floor(at[c] * size[c]) + 0.5) / size[c];
                there[c] = (mm - (double)corners[0][c]) / (double)(corners[1][c] - corners[0][c]);
                off[c] = fabs(low + voxel * (high - low) - (double)region[0][c]) / (double)region[1][c];
                field += c < 2 ? (int)floor((mm - low) / 16) : 0;
            }
            const double own = value_of(values, size, at, style[1], style[2]);
            const double beside = value_of(other, other_size, there, style[1], style[2]);
            const double ratio = own > 0 ? 0.5 + 0.5 * log2(own / beside) : 0;
            const double first = (own - 1) / (5 - 1), second = style[0] == DIFFERENCE ? 0.5 + 0.5 * (own - beside) / 4
                                                               : style[0] == RATIO    ? ratio
                                                                                      : (beside - 0.25) / 4.25;
            const double share = style[0] == 0 ? 0 : style[0] == FUSED ? 0.3 : style[0] == CHECKERED ? field % 2 : 1;
            const bool is_inside = style[3] == EVERYWHERE ||
                                   (style[3] == BOX && fmax(off[0], fmax(off[1], off[2])) <= 1) ||
                                   (style[3] == ELLIPSOID && off[0] * off[0] + off[1] * off[1] + off[2] * off[2] <= 1);
            const double cover = is_inside && own >= 1.1 && own <= 4.6 ? 0.45 : 0;
            bool is_between = false; /* two colours of a map */
            for (int m = 0; m < 2; m++) {
                const double colour = COLOURS * (m == 0 ? first : second);
                is_between = is_between || fabs(colour - floor(colour + 0.5)) < 1e-4;
            }
            if (is_between) continue;
            for (int c = 0; c < 3; c++) {
                const double other_colour = style[0] == RATIO && own <= 0 ? 0.5 : (double)mapped(above_map, second)[c];
                wanted[c] = (1 - share) * (double)mapped(map, first)[c] + share * other_colour;
                wanted[c] = (1 - cover) * wanted[c] + cover * tint[c];
            }
            expect_words(pixels[k], wanted, 4, "mixed slice");
        }
    }
}

/* Faces cover half of the pitch along u and three fifths along v. Values of 0 are drawn, negative values are not. */
static void test_crystals_frag(void **context)
{
    const char *const outputs[2] = {"layout(location = 0) flat out int module;\nlayout(location = 1) flat out float "
                                    "faces;\nlayout(location = 2) out vec2 at;",
                                    "module = int(given.x);\nfaces = given.y;\nat = corner * given.zw;"};
    struct scene scene = make_scene();
    struct module_words modules[MODULES];
    float values[30];
    make_modules(&scene, modules);
    for (int k = 0; k < 30; k++) values[k] = k % 3 == 0 ? -1.0f : k % 3 == 1 ? 0.0f : 0.033f * (float)k;
    scene.buffers[2] = device_buffer(sizeof(values), values);
    scene.textures[0] = map_texture(map);
    for (int m = 0; m < MODULES; m++) {
        const int count[2] = {3 + m, 2};
        const double faces = 0.3 + 0.2 * m;
        const float given[4] = {(float)m, (float)faces, (float)count[0], (float)count[1]};
        const float(*pixels)[4] = paint("viewer/view_crystals.frag", &scene, outputs, given);
        int drawn = 0;
        for (int k = 0; k < WIDTH * HEIGHT; k++) {
            const double u = (k % WIDTH + 0.5) / WIDTH * count[0], v = (k / WIDTH + 0.5) / HEIGHT * count[1];
            const int p = (int)u, q = (int)v;
            const double off_u = fabs(u - p - 0.5) * 2, off_v = fabs(v - q - 0.5) * 2.5; /* mm from its middle */
            double wanted[4] = {0};
            if (fabs(off_u - 0.5) < 1e-4 || fabs(off_v - 0.75) < 1e-4) continue; /* on an edge */
            if (off_u < 0.5 && off_v < 0.75) {
                const double value = (double)values[10 * m + q * count[0] + p], dim = m == 1 ? 1.25 : 0.8;
                for (int j = 0; j < 3; j++)
                    wanted[j] =
                        value >= 0 ? (double)mapped(map, value)[j]
                                   : channel(module_colours[m], j) * dim * (0.55 + 0.45 * faces) + 0.06 * ((p + q) % 2);
                wanted[3] = 1;
                drawn++;
            }
            expect_words(pixels[k], wanted, 4, "crystal");
        }
        assert_true(drawn > WIDTH * HEIGHT / 6);
    }
}

/* A box of two halves along x. Rays cross both halves, from either side, or begin inside one. The light of a half is
 * that of a uniform medium, 1 - exp(-opacity length), for any number of steps; the half behind is seen through the half
 * in front. */
static void test_volume_frag(void **context)
{
    const char *const outputs[2] = {"layout(location = 0) out vec3 to;", "to = vec3(given.x, 0.2, 0.2);"};
    for (int n = 0; n < 6; n++) {
        const double inside = n % 3 == 2 ? 0.5 : 0, from_x = n % 2 == 0 ? 1 : -1, way = 2 - 2 * inside;
        struct scene scene = make_scene();
        const float values[2] = {3.2f, 7}, haze[2] = {n < 3 ? 0.0f : 0.5f, 0.25f};
        for (int k = 0; k < 3; k++) {
            scene.view.low_mm[k] = -1;
            scene.view.high_mm[k] = 1;
            scene.view.eye[k] = k == 0 ? (float)(from_x * (inside > 0 ? 1 - 2 * inside : 9)) : 0.2f;
        }
        const double steps[4] = {0.251, 0.8, 0.3, n < 3 ? 0 : 1}; /* four steps to a half */
        for (int k = 0; k < 4; k++) scene.view.steps[k] = (float)steps[k];
        scene.textures[0] = map_texture(map);
        scene.textures[1] = device_texture(GL_TEXTURE_3D, GL_R32F, (const int[3]){2, 1, 1}, values);
        scene.textures[2] = device_texture(GL_TEXTURE_3D, GL_R32F, (const int[3]){2, 1, 1}, haze);
        const float far[4] = {(float)-from_x};
        const float(*pixels)[4] = paint("viewer/view_volume.frag", &scene, outputs, far);
        double wanted[4] = {0}, open = 1;
        for (int half = 0; half < 2; half++) {
            const bool is_upper = (half == 0) == (from_x > 0); /* along x */
            const double length = half == 1 || inside == 0 ? 1 : way - 1;
            const double value = fmin(((double)values[is_upper] - 1) / 4, 1), light = steps[1] * value * value;
            const double grey = steps[3] > 0 ? steps[2] * (double)haze[is_upper] : 0;
            const double stopped = length > 0 ? 1 - exp(-length * (light + grey)) : 0;
            for (int k = 0; k < 3; k++) {
                const double share = light / (light + grey);
                wanted[k] += open * stopped * (0.62 + share * ((double)mapped(map, value)[k] - 0.62));
            }
            open *= 1 - stopped;
        }
        for (int k = 0; k < 3; k++) wanted[k] /= 1 - open;
        wanted[3] = 1 - open;
        expect_pixels(pixels, wanted, "ray");
    }
}

stage_main("render_alone_viewer", CASES(test_lines_vert, test_slice_vert, test_volume_vert, test_crystals_vert,
                                        test_boxes_vert, test_flat_frag, test_lines_frag, test_slice_frag,
                                        test_slice_mixed, test_crystals_frag, test_volume_frag))
