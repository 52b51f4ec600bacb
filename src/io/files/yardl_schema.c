/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors
 *
 * The schema of a yardl file, as a tree of types in which all names and generic types are
 * spelled out. */
#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/files/yaml.h"
#include "io/files/yardl.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TYPES = 1 << 14, MAX_DEPTH = 64, MAX_TEXT = 1 << 18, MAX_DIGITS = 18 };

static const int64_t most_bytes = INT64_C(1) << 60;

struct named_type {
    const char *name;
    struct fy_node *node;
};

struct lr_yardl_schema {
    char *text;
    struct lr_yaml *yaml;
    const lr_log *log;
    const char *path;
    struct named_type *names; /* owned [num_names] */
    int num_names;
    struct lr_yardl_type **types; /* owned [num_types], each owned */
    int num_types;
    int64_t room;
    const char *name;
    struct lr_yardl_type *protocol;
};

/* What the parameters of a generic type stand for. */
struct arguments {
    struct fy_node *parameters, *values; /* sequences of equal length; NULL = none */
    const struct arguments *outer;       /* in which the values are to be read */
};

/* --- the text --- */

/* JSON only, and not too deep: libfyaml would read all of YAML, as deep as the stack holds. */
static lr_status check_text(const char *path, const char *text, int64_t bytes, const lr_log *log)
{
    int depth = 0;
    bool quoted = false;
    for (int64_t k = 0; k < bytes; k++) {
        const char c = text[k];
        if (quoted) {
            k += c == '\\' ? 1 : 0;
            quoted = c != '"';
            continue;
        }
        quoted = c == '"';
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        const bool plain =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c != '\0' && strchr("{}[]:,\"+-.E \t\r\n", c) != NULL);
        if (!plain || depth < 0 || depth > MAX_DEPTH) {
            return lr_error(log, LR_BAD_INPUT,
                            "%s: its schema is no JSON of at most %d levels (byte %lld of it): the "
                            "file is damaged",
                            path, MAX_DEPTH, (long long)k);
        }
    }
    return LR_OK;
}

static lr_status bad(const struct lr_yardl_schema *schema, const char *what, const char *name)
{
    return lr_error(schema->log, LR_BAD_INPUT,
                    "%s: its schema %s '%.60s': the file is damaged, or newer than this program", schema->path, what,
                    name != NULL ? name : "");
}

static const char *text_of(struct fy_node *node)
{
    return node != NULL && fy_node_is_scalar(node) ? fy_node_get_scalar0(node) : NULL;
}

static struct fy_node *child(struct fy_node *node, const char *key)
{
    return node != NULL && fy_node_is_mapping(node) ? fy_node_mapping_lookup_by_string(node, key, (size_t)-1) : NULL;
}

static int count_of(struct fy_node *node)
{
    return node != NULL && fy_node_is_sequence(node) ? fy_node_sequence_item_count(node) : 0;
}

static bool whole(struct fy_node *node, int64_t *value)
{
    const char *text = text_of(node);
    char *end = NULL;
    if (text == NULL || text[0] < '0' || text[0] > '9' || strlen(text) > MAX_DIGITS) return false;
    *value = strtoll(text, &end, 10);
    return *end == '\0';
}

/* --- types --- */

static struct lr_yardl_type *new_type(struct lr_yardl_schema *schema, enum lr_yardl_kind kind, int num_parts)
{
    if (schema->num_types == MAX_TYPES || num_parts > MAX_TYPES) {
        (void)bad(schema, "has more than 16384 types, in", schema->name);
        return NULL;
    }
    const struct lr_items items = {sizeof(*schema->types), "a schema", schema->log};
    if (lr_grow(&schema->types, &schema->room, schema->num_types + 1, &items) != LR_OK) return NULL;
    struct lr_yardl_type *type = lr_alloc(1, sizeof(*type), "a schema", schema->log);
    if (type == NULL) return NULL;
    schema->types[schema->num_types++] = type;
    type->kind = kind;
    type->num_parts = num_parts;
    type->parts = num_parts > 0 ? lr_alloc(num_parts, sizeof(*type->parts), "a schema", schema->log) : NULL;
    return num_parts == 0 || type->parts != NULL ? type : NULL;
}

static int64_t add_bytes(int64_t a, int64_t b)
{
    return a > most_bytes - b ? most_bytes : a + b;
}

static int64_t times_bytes(int64_t count, int64_t bytes)
{
    return bytes > 0 && count > most_bytes / bytes ? most_bytes : count * bytes;
}

static const struct primitive {
    const char *name;
    enum lr_yardl_kind kind;
    int bytes; /* least number */
    bool same;
} primitives[] = {
    {"bool", LR_YARDL_BYTE, 1, true},
    {"uint8", LR_YARDL_BYTE, 1, true},
    {"int8", LR_YARDL_INT8, 1, true},
    {"uint16", LR_YARDL_UNSIGNED, 1, false},
    {"uint32", LR_YARDL_UNSIGNED, 1, false},
    {"uint64", LR_YARDL_UNSIGNED, 1, false},
    {"size", LR_YARDL_UNSIGNED, 1, false},
    {"int16", LR_YARDL_SIGNED, 1, false},
    {"int32", LR_YARDL_SIGNED, 1, false},
    {"int64", LR_YARDL_SIGNED, 1, false},
    {"date", LR_YARDL_SIGNED, 1, false},
    {"time", LR_YARDL_SIGNED, 1, false},
    {"datetime", LR_YARDL_SIGNED, 1, false},
    {"float32", LR_YARDL_FLOAT32, 4, true},
    {"float64", LR_YARDL_FLOAT64, 8, true},
    {"complexfloat32", LR_YARDL_COMPLEX, 8, true},
    {"complexfloat64", LR_YARDL_COMPLEX, 16, true},
    {"string", LR_YARDL_STRING, 1, false},
};

static struct lr_yardl_type *resolve(struct lr_yardl_schema *schema, struct fy_node *node,
                                     const struct arguments *arguments, int depth);

static struct lr_yardl_type *resolve_primitive(struct lr_yardl_schema *schema, const char *name, bool *found)
{
    *found = false;
    for (size_t k = 0; k < sizeof(primitives) / sizeof(primitives[0]); k++) {
        if (strcmp(primitives[k].name, name) == 0) {
            *found = true;
            struct lr_yardl_type *type = new_type(schema, primitives[k].kind, 0);
            if (type != NULL) {
                type->least_bytes = primitives[k].bytes;
                type->same_bytes = primitives[k].same;
            }
            return type;
        }
    }
    return NULL;
}

/* Takes over from the item: how many bytes a list has. */
static void measure_list(struct lr_yardl_type *type)
{
    if (!type->is_fixed) {
        type->least_bytes = type->rank > 1 ? type->rank : 1;
        return;
    }
    int64_t count = 1;
    for (int k = 0; k < type->rank; k++) count = times_bytes(type->dims[k], count);
    type->least_bytes = times_bytes(count, type->item->least_bytes);
    type->same_bytes = type->item->same_bytes;
}

static struct lr_yardl_type *resolve_vector(struct lr_yardl_schema *schema, struct fy_node *node,
                                            const struct arguments *arguments, int depth)
{
    struct lr_yardl_type *type = new_type(schema, LR_YARDL_LIST, 0);
    struct fy_node *length = child(node, "length");
    if (type == NULL) return NULL;
    type->rank = 1;
    type->is_fixed = length != NULL;
    if (length != NULL && !whole(length, &type->dims[0])) {
        (void)bad(schema, "has a vector of length", text_of(length));
        return NULL;
    }
    type->item = resolve(schema, child(node, "items"), arguments, depth);
    if (type->item == NULL) return NULL;
    measure_list(type);
    return type;
}

static bool read_dims(struct fy_node *node, struct lr_yardl_type *type)
{
    int64_t rank = count_of(node);
    if (node == NULL) {
        type->rank = -1;
        return true;
    }
    if (!fy_node_is_sequence(node) && !whole(node, &rank)) return false;
    if (rank < 1 || rank > LR_YARDL_MAX_RANK) return false;
    type->rank = (int)rank;
    int known = 0;
    for (int k = 0; fy_node_is_sequence(node) && k < type->rank; k++)
        known += whole(child(fy_node_sequence_get_by_index(node, k), "length"), &type->dims[k]);
    type->is_fixed = known == type->rank;
    return known == 0 || known == type->rank;
}

static struct lr_yardl_type *resolve_array(struct lr_yardl_schema *schema, struct fy_node *node,
                                           const struct arguments *arguments, int depth)
{
    struct lr_yardl_type *type = new_type(schema, LR_YARDL_LIST, 0);
    if (type == NULL) return NULL;
    if (!read_dims(child(node, "dimensions"), type)) {
        (void)bad(schema, "has an array of dimensions that are not understood, in", schema->name);
        return NULL;
    }
    type->item = resolve(schema, child(node, "items"), arguments, depth);
    if (type->item == NULL) return NULL;
    measure_list(type);
    return type;
}

static struct lr_yardl_type *resolve_map(struct lr_yardl_schema *schema, struct fy_node *node,
                                         const struct arguments *arguments, int depth)
{
    struct lr_yardl_type *type = new_type(schema, LR_YARDL_MAP, 2);
    if (type == NULL) return NULL;
    type->least_bytes = 1;
    type->parts[0].type = resolve(schema, child(node, "keys"), arguments, depth);
    type->parts[1].type = type->parts[0].type ? resolve(schema, child(node, "values"), arguments, depth) : NULL;
    return type->parts[1].type != NULL ? type : NULL;
}

static bool is_null(struct fy_node *node)
{
    const char *text = text_of(node);
    return text == NULL ? node == NULL : strcmp(text, "null") == 0;
}

/* [null, T], or cases {"tag": ..., "type": ...}. */
static struct lr_yardl_type *resolve_union(struct lr_yardl_schema *schema, struct fy_node *node,
                                           const struct arguments *arguments, int depth)
{
    struct lr_yardl_type *type = new_type(schema, LR_YARDL_UNION, count_of(node));
    if (type == NULL) return NULL;
    type->least_bytes = 1;
    for (int k = 0; k < type->num_parts; k++) {
        struct fy_node *item = fy_node_sequence_get_by_index(node, k);
        struct fy_node *inner = child(item, "type");
        const char *tag = text_of(child(item, "tag"));
        type->parts[k].name = tag != NULL ? tag : "";
        if (is_null(item) || (inner != NULL && is_null(inner))) {
            type->parts[k].name = "null";
            continue;
        }
        type->parts[k].type = resolve(schema, inner != NULL ? inner : item, arguments, depth);
        if (type->parts[k].type == NULL) return NULL;
    }
    return type;
}

static struct lr_yardl_type *resolve_record(struct lr_yardl_schema *schema, struct fy_node *fields,
                                            const struct arguments *arguments, int depth)
{
    struct lr_yardl_type *type = new_type(schema, LR_YARDL_RECORD, count_of(fields));
    if (type == NULL) return NULL;
    type->same_bytes = true;
    for (int k = 0; k < type->num_parts; k++) {
        struct fy_node *field = fy_node_sequence_get_by_index(fields, k);
        const char *name = text_of(child(field, "name"));
        const struct lr_yardl_type *part =
            name != NULL ? resolve(schema, child(field, "type"), arguments, depth) : NULL;
        if (part == NULL) {
            (void)(name == NULL ? bad(schema, "has a field without name in", schema->name) : LR_OK);
            return NULL;
        }
        type->parts[k] = (struct lr_yardl_part){name, part};
        type->least_bytes = add_bytes(type->least_bytes, part->least_bytes);
        type->same_bytes = type->same_bytes && part->same_bytes;
    }
    return type;
}

static struct lr_yardl_type *resolve_named(struct lr_yardl_schema *schema, const char *name,
                                           const struct arguments *arguments, int depth)
{
    const char *dot = strrchr(name, '.');
    const char *own = dot != NULL ? dot + 1 : name;
    struct fy_node *node = NULL;
    for (int k = 0; k < schema->num_names && node == NULL; k++)
        node = strcmp(schema->names[k].name, own) == 0 ? schema->names[k].node : NULL;
    if (node == NULL) {
        (void)bad(schema, "lacks the type", name);
        return NULL;
    }
    struct arguments inner = {child(node, "typeParameters"), NULL, NULL};
    if (arguments != NULL) {
        inner.values = arguments->values;
        inner.outer = arguments->outer;
    }
    if (count_of(inner.parameters) != count_of(inner.values)) {
        (void)bad(schema, "gives another number of arguments to", name);
        return NULL;
    }
    if (child(node, "fields") != NULL) return resolve_record(schema, child(node, "fields"), &inner, depth);
    if (child(node, "values") != NULL) { /* an enumeration, or flags */
        const char *base = text_of(child(node, "base"));
        bool found;
        return resolve_primitive(schema, base != NULL ? base : "int32", &found);
    }
    return resolve(schema, child(node, "type"), &inner, depth);
}

static struct lr_yardl_type *resolve_name(struct lr_yardl_schema *schema, const char *name,
                                          const struct arguments *arguments, int depth)
{
    bool found = false;
    struct lr_yardl_type *type = resolve_primitive(schema, name, &found);
    for (int k = 0; !found && arguments != NULL && k < count_of(arguments->parameters); k++) {
        const char *parameter = text_of(fy_node_sequence_get_by_index(arguments->parameters, k));
        if (parameter != NULL && strcmp(parameter, name) == 0)
            return resolve(schema, fy_node_sequence_get_by_index(arguments->values, k), arguments->outer, depth);
    }
    return found ? type : resolve_named(schema, name, NULL, depth);
}

static struct lr_yardl_type *resolve_mapping(struct lr_yardl_schema *schema, struct fy_node *node,
                                             const struct arguments *arguments, int depth)
{
    struct fy_node *inner;
    if ((inner = child(node, "vector")) != NULL) return resolve_vector(schema, inner, arguments, depth);
    if ((inner = child(node, "array")) != NULL) return resolve_array(schema, inner, arguments, depth);
    if ((inner = child(node, "stream")) != NULL) {
        struct lr_yardl_type *type = resolve_vector(schema, inner, arguments, depth);
        if (type != NULL) type->is_stream = true;
        return type;
    }
    if ((inner = child(node, "map")) != NULL) return resolve_map(schema, inner, arguments, depth);
    const char *name = text_of(child(node, "name"));
    if (name == NULL) {
        (void)bad(schema, "has a type that is not understood, in", schema->name);
        return NULL;
    }
    const struct arguments given = {NULL, child(node, "typeArguments"), arguments};
    return resolve_named(schema, name, &given, depth);
}

/* NULL, logged. depth counts the types within types. */
static struct lr_yardl_type *resolve(struct lr_yardl_schema *schema, struct fy_node *node,
                                     const struct arguments *arguments, int depth)
{
    const char *name = text_of(node);
    if (depth > MAX_DEPTH) {
        (void)bad(schema, "nests types more than 64 deep, in", schema->name);
        return NULL;
    }
    if (name != NULL) return resolve_name(schema, name, arguments, depth + 1);
    if (node != NULL && fy_node_is_sequence(node)) return resolve_union(schema, node, arguments, depth + 1);
    if (node != NULL && fy_node_is_mapping(node)) return resolve_mapping(schema, node, arguments, depth + 1);
    (void)bad(schema, "lacks a type, in", schema->name);
    return NULL;
}

/* --- the whole --- */

static lr_status list_names(struct lr_yardl_schema *schema, struct fy_node *types)
{
    const int count = count_of(types);
    schema->names = lr_alloc(count, sizeof(*schema->names), "a schema", schema->log);
    if (schema->names == NULL) return LR_FAILED;
    void *iterator = NULL;
    struct fy_node *node;
    while (count > 0 && schema->num_names < count && (node = fy_node_sequence_iterate(types, &iterator)) != NULL) {
        const char *name = text_of(child(node, "name"));
        if (name == NULL) return bad(schema, "has a type without name in", schema->name);
        schema->names[schema->num_names++] = (struct named_type){name, node};
    }
    return LR_OK;
}

static lr_status build(struct lr_yardl_schema *schema)
{
    struct fy_node *root = lr_yaml_root(schema->yaml);
    struct fy_node *protocol = child(root, "protocol");
    schema->name = text_of(child(protocol, "name"));
    if (schema->name == NULL || count_of(child(protocol, "sequence")) == 0) return bad(schema, "has no protocol", "");
    LR_TRY(list_names(schema, child(root, "types")));
    schema->protocol = resolve_record(schema, child(protocol, "sequence"), NULL, 0);
    return schema->protocol != NULL ? LR_OK : LR_BAD_INPUT;
}

struct lr_yardl_schema *lr_yardl_schema_parse(const char *name, const char *text, int64_t text_bytes, const lr_log *log)
{
    if (text_bytes > MAX_TEXT) {
        lr_error(log, LR_BAD_INPUT, "%s: its schema has %lld bytes, more than 256 KiB: it is damaged", name,
                 (long long)text_bytes);
        return NULL;
    }
    if (check_text(name, text, text_bytes, log) != LR_OK) return NULL;
    struct lr_yardl_schema *schema = lr_alloc(1, sizeof(*schema), "a schema", log);
    if (schema == NULL) return NULL;
    schema->log = log;
    schema->path = name;
    schema->text = lr_alloc(text_bytes + 1, 1, "a schema", log);
    if (schema->text != NULL && text_bytes == 0) {
        (void)bad(schema, "has no protocol", "");
    } else if (schema->text != NULL) {
        memcpy(schema->text, text, (size_t)text_bytes);
        schema->yaml = lr_yaml_parse(name, text, text_bytes, log);
    }
    if (schema->yaml == NULL || build(schema) != LR_OK) {
        lr_yardl_schema_destroy(schema);
        return NULL;
    }
    schema->path = ""; /* the caller's */
    return schema;
}

void lr_yardl_schema_destroy(struct lr_yardl_schema *schema)
{
    if (schema == NULL) return;
    for (int k = 0; k < schema->num_types; k++) {
        free(schema->types[k]->parts);
        free(schema->types[k]);
    }
    free(schema->types);
    free(schema->names);
    lr_yaml_destroy(schema->yaml);
    free(schema->text);
    free(schema);
}

const struct lr_yardl_type *lr_yardl_schema_protocol(const struct lr_yardl_schema *schema)
{
    return schema->protocol;
}

const char *lr_yardl_schema_name(const struct lr_yardl_schema *schema)
{
    return schema->name;
}

const char *lr_yardl_schema_text(const struct lr_yardl_schema *schema)
{
    return schema->text;
}
