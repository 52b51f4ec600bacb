/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#include "arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <string>

using namespace nb::literals;

CudaPlaces::~CudaPlaces()
{
    for (const Kept &one : kept) lr_place_close(one.place);
}

lr_place *CudaPlaces::at(int device, void *stream)
{
    for (const Kept &one : kept)
        if (one.device == device && one.stream == stream) return one.place;
    lr_place_params params = {};
    params.kind = LR_PLACE_CUDA;
    params.device = device;
    params.cuda_stream = stream;
    params.log = log;
    lr_place *place = lr_place_open(&params);
    if (place != nullptr) kept.push_back({device, stream, place});
    return place;
}

lr_traffic CudaPlaces::traffic() const
{
    lr_traffic sum = {};
    for (const Kept &one : kept) {
        const lr_traffic traffic = lr_place_get_info(one.place).traffic;
        sum.to_device += traffic.to_device;
        sum.to_host += traffic.to_host;
    }
    return sum;
}

std::string shape_text(const int64_t *shape, size_t num_dims)
{
    std::string text = "(";
    for (size_t k = 0; k < num_dims; k++)
        text += (k > 0 ? ", " : "") + (shape[k] < 0 ? std::string("n") : std::to_string(shape[k]));
    return text + (num_dims == 1 ? ",)" : ")");
}

static std::string class_name(nb::handle object)
{
    return nb::cast<std::string>(nb::str(nb::handle(object.type()).attr("__name__")));
}

static std::string number_name(nb::dlpack::dtype type)
{
    static const char *const kinds[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
    if (type.code >= sizeof(kinds) / sizeof(kinds[0])) return "numbers of another kind";
    return type.code == 6 ? "bool" : kinds[type.code] + std::to_string(type.bits);
}

/* Returns the number of the CUDA device that has the array; -1 = the array is not on CUDA. */
static int cuda_device_of(nb::handle object)
{
    if (!nb::hasattr(object, "__dlpack_device__")) return nb::hasattr(object, "__cuda_array_interface__") ? 0 : -1;
    nb::tuple device = nb::cast<nb::tuple>(object.attr("__dlpack_device__")());
    const int kind = nb::cast<int>(nb::int_(device[0]));
    return kind == nb::device::cuda::value || kind == nb::device::cuda_managed::value
               ? nb::cast<int>(nb::int_(device[1]))
               : -1;
}

/* Wraps an array on CUDA's first device that has __cuda_array_interface__ but no DLPack. */
static nb::ndarray<nb::ro> of_cuda_interface(nb::handle object)
{
    nb::dict facts = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
    const auto shape = nb::cast<std::vector<size_t>>(facts["shape"]);
    const auto type = nb::cast<std::string>(facts["typestr"]);
    nb::dlpack::dtype dtype = nb::dtype<float>();
    dtype.code = type.size() > 1 && type[1] == 'f' ? dtype.code : nb::dtype<int>().code;
    dtype.bits = (uint8_t)(8 * std::atoi(type.substr(type.size() > 1 ? 2 : 0).c_str()));
    std::vector<int64_t> strides;
    if (facts.contains("strides") && !facts["strides"].is_none())
        for (const int64_t bytes : nb::cast<std::vector<int64_t>>(facts["strides"]))
            strides.push_back(bytes * 8 / dtype.bits);
    void *memory = reinterpret_cast<void *>(nb::cast<uintptr_t>(nb::tuple(facts["data"])[0]));
    return nb::ndarray<nb::ro>(memory, shape.size(), shape.data(), object, strides.empty() ? nullptr : strides.data(),
                               dtype, nb::device::cuda::value, 0);
}

static bool is_numpy(nb::handle object)
{
    static PyObject *type = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
    return object.type().ptr() == type;
}

/* The properties of an array, given by its library. */
struct View {
    void *memory = nullptr;
    nb::dlpack::dtype dtype;
    int64_t num_dims = 0;
    const int64_t *shape = nullptr, *strides = nullptr; /* strides null = C order */
    bool is_read_only = false;
};

/* The content of a capsule with a version, in the layout of DLPack's specification. */
struct VersionedTensor {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(VersionedTensor *);
    uint64_t flags; /* bit 0: read-only */
    nb::dlpack::dltensor tensor;
};

/* Reads the properties of the array in a capsule. The capsule owns the array. */
static View view_of(nb::handle capsule)
{
    View view;
    const void *plain = PyCapsule_GetPointer(capsule.ptr(), "dltensor");
    const nb::dlpack::dltensor *tensor = static_cast<const nb::dlpack::dltensor *>(plain);
    if (tensor == nullptr) {
        PyErr_Clear();
        auto *versioned =
            static_cast<const VersionedTensor *>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
        if (versioned == nullptr) throw nb::python_error();
        tensor = &versioned->tensor;
        view.is_read_only = (versioned->flags & 1) != 0;
    }
    view.memory = static_cast<char *>(tensor->data) + tensor->byte_offset;
    view.dtype = tensor->dtype;
    view.num_dims = tensor->ndim;
    view.shape = tensor->shape;
    view.strides = tensor->strides;
    return view;
}

/* Asks an array on the host for its DLPack capsule. A capsule without a version is faster, but arrays that are
 * read-only refuse it. Returns null, without an exception, for objects without DLPack, and for read-only arrays of NumPy
 * before version 2, which have the buffer protocol instead. */
static nb::object host_capsule(nb::handle object)
{
    static PyObject *method = PyUnicode_InternFromString("__dlpack__");
    PyObject *made = PyObject_CallMethodObjArgs(object.ptr(), method, nullptr);
    if (made == nullptr && PyErr_ExceptionMatches(PyExc_BufferError)) {
        PyErr_Clear();
        try {
            return object.attr("__dlpack__")("max_version"_a = nb::make_tuple(1, 0));
        } catch (nb::python_error &error) {
            if (!error.matches(PyExc_TypeError)) throw;
            return {};
        }
    }
    if (made == nullptr) PyErr_Clear();
    return nb::steal(made);
}

/* Refuses NumPy's masked arrays, whose masks would be ignored. */
static void refuse_mask(nb::handle object, const char *name)
{
    if (!is_numpy(object) && nb::hasattr(object, "filled"))
        throw nb::type_error(
            (std::string(name) + " is a masked array, and its mask would be ignored: fill it by .filled(0)").c_str());
}

Array::Array(nb::handle object, const Wanted &wanted)
{
    refuse_mask(object, wanted.name);
    if (!is_numpy(object)) device = cuda_device_of(object);
    if (device < 0) {
        capsule = host_capsule(object);
    } else if (!wanted.cuda) {
        const std::string name = wanted.name;
        throw nb::value_error((name + " is on a GPU, and the work is done by the processor: write " + name +
                               ".cpu() in PyTorch, cupy.asnumpy(" + name + ") in CuPy")
                                  .c_str());
    } else {
        nb::tuple given = nb::cast<nb::tuple>(nb::module_::import_("loraster._arrays").attr("on_stream")(object));
        stream = reinterpret_cast<void *>(static_cast<uintptr_t>(nb::cast<uint64_t>(nb::object(given[0]))));
        is_ordered = nb::cast<bool>(nb::object(given[1]));
        capsule = given[2];
        if (capsule.is_none()) {
            capsule.reset();
            held = of_cuda_interface(object);
        }
    }
    View view;
    if (capsule.is_valid()) {
        view = view_of(capsule);
    } else {
        nb::ndarray<> writable;
        if (nb::isinstance<nb::str>(object))
            throw nb::type_error((std::string(wanted.name) + " is a str: write lr.read(" +
                                  nb::repr(object).c_str() + (wanted.shape->size() == 3 ? ").values" : ", scanner)"))
                                     .c_str());
        if (!held.is_valid() && is_numpy(object) && !nb::try_cast(object, held))
            throw nb::type_error((std::string(wanted.name) + " has numbers of type " +
                                  nb::repr(object.attr("dtype")).c_str() + ", and float32 of this machine's byte order is "
                                  "wanted: write " + wanted.name + ".astype('float32')")
                                     .c_str());
        if (!held.is_valid() && !nb::try_cast(object, held))
            throw nb::type_error((std::string(wanted.name) + " is a " + class_name(object) +
                                  ", and not an array: write numpy.asarray(" + wanted.name +
                                  ", dtype=numpy.float32), or give an array of PyTorch, CuPy or another library that "
                                  "has __dlpack__")
                                     .c_str());
        view.memory = const_cast<void *>(held.data());
        view.dtype = held.dtype();
        view.num_dims = (int64_t)held.ndim();
        view.shape = held.shape_ptr();
        view.strides = held.stride_ptr();
        view.is_read_only = wanted.writes && device < 0 && !nb::try_cast(object, writable);
    }
    take(view, wanted);
}

/* Takes the array if its numbers, shape and device are as required, otherwise throws. */
void Array::take(const View &view, const Wanted &wanted)
{
    const Shape &shape = *wanted.shape;
    const bool is_double = view.dtype == nb::dtype<double>();
    bool is_same = view.num_dims == (int64_t)shape.size(), is_dense = true;
    for (size_t k = 0; k < shape.size() && is_same; k++) is_same = shape[k] < 0 || view.shape[k] == shape[k];
    num = 1;
    for (int64_t k = view.num_dims; k-- > 0;) {
        is_dense = is_dense && (view.strides == nullptr || view.shape[k] == 1 || view.strides[k] == num);
        num *= view.shape[k];
    }
    memory = view.memory;
    precision = is_double ? LR_FLOAT64 : LR_FLOAT32;
    const bool is_number = view.dtype == nb::dtype<float>() || (is_double && wanted.doubles);
    if (is_number && is_same && is_dense && !(wanted.writes && view.is_read_only)) return;

    const std::string name = wanted.name, empty = "out=numpy.empty(shape, dtype=numpy.float32)";
    if (!is_number)
        throw nb::type_error((name + " has numbers of type " + number_name(view.dtype) + ", and float32 " +
                              (wanted.doubles ? "or float64 " : "") + "is wanted: write " +
                              (wanted.writes ? empty : name + ".astype('float32'), or " + name + ".float() in PyTorch"))
                                 .c_str());
    if (!is_same) {
        const Shape given(view.shape, view.shape + view.num_dims), turned(given.rbegin(), given.rend());
        const std::string right = shape_text(shape.data(), shape.size());
        int64_t num_wanted = 1;
        for (const int64_t n : shape) num_wanted *= n;
        std::string remedy;
        if (wanted.mistaken != nullptr && *wanted.mistaken == given)
            remedy = std::string(": ") + wanted.remedy;
        else if (turned == shape)
            remedy = ": images are [nz][ny][nx], and grids (nx, ny, nz): was the grid given as " + name +
                     ".shape? Write " + name + ".shape[::-1] there, or, for an array [nx][ny][nz], "
                     "numpy.ascontiguousarray(" + name + ".T)";
        else if (num == num_wanted && given.size() == 1)
            remedy = ": write " + name + ".reshape" + right;
        throw nb::value_error((name + " has the shape " + shape_text(given.data(), given.size()) + ", and " + right +
                               " is wanted" + remedy)
                                  .c_str());
    }
    if (!is_dense)
        throw nb::value_error(
            (name + " is not in C order, or has gaps between its numbers: write " +
             (wanted.writes ? empty : "numpy.ascontiguousarray(" + name + "), or " + name + ".contiguous() in PyTorch"))
                .c_str());
    throw nb::value_error((name + " is read-only: give an array that can be written to").c_str());
}

lr_status Array::vector(CudaPlaces *places, const lr_log *log, lr_vector *vector)
{
    *vector = {};
    if (memory == nullptr) return LR_OK; /* there is no array */
    if (device < 0) {
        *vector = precision == LR_FLOAT64 ? lr_vector_of_doubles(static_cast<double *>(memory), num)
                                          : lr_vector_of_floats(static_cast<float *>(memory), num);
        return LR_OK;
    }
    if (wrapped.storage == nullptr) {
        lr_vector_params params = {};
        params.place = places->at(device, stream);
        params.count = num;
        params.precision = precision;
        params.log = log;
        if (params.place == nullptr) return LR_NO_DEVICE;
        const lr_status status = lr_vector_wrap_cuda(&params, memory, &wrapped);
        if (status != LR_OK) return status;
    }
    *vector = wrapped;
    return LR_OK;
}

lr_status Array::finish()
{
    if (is_ordered || wrapped.storage == nullptr || num == 0) return LR_OK;
    // A copy to the host returns after its stream has done all queued work.
    double number = 0;
    const lr_vector first = lr_vector_part(&wrapped, 0, 1);
    lr_vector on_host = lr_vector_of_doubles(&number, 1);
    return lr_vector_copy(&first, &on_host);
}

template <class Number>
nb::ndarray<const Number, nb::c_contig, nb::device::cpu, nb::ro> rows_of(nb::handle object, const char *name,
                                                                         int64_t columns)
{
    refuse_mask(object, name);
    nb::ndarray<const Number, nb::c_contig, nb::device::cpu, nb::ro> rows;
    const bool is_array = nb::try_cast(object, rows, false);
    if (is_array && (columns == 0 ? rows.ndim() == 1 : rows.ndim() == 2 && rows.shape(1) == (size_t)columns))
        return rows;
    const std::string type = number_name(nb::dtype<Number>());
    const int64_t shape[] = {-1, columns};
    const std::string wanted = shape_text(shape, columns == 0 ? 1 : 2);
    if (is_array)
        throw nb::value_error((std::string(name) + " has the shape " + shape_text(rows.shape_ptr(), rows.ndim()) +
                               ", and " + wanted + " is wanted")
                                  .c_str());
    throw nb::type_error((std::string(name) + " must be an array of " + type + " with the shape " +
                          wanted + ": write numpy.ascontiguousarray(" + name + ", dtype=numpy." + type + ")")
                             .c_str());
}
template nb::ndarray<const float, nb::c_contig, nb::device::cpu, nb::ro> rows_of(nb::handle, const char *, int64_t);
template nb::ndarray<const double, nb::c_contig, nb::device::cpu, nb::ro> rows_of(nb::handle, const char *, int64_t);
template nb::ndarray<const int32_t, nb::c_contig, nb::device::cpu, nb::ro> rows_of(nb::handle, const char *, int64_t);
template nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu, nb::ro> rows_of(nb::handle, const char *, int64_t);
