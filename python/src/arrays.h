/* SPDX-License-Identifier: Apache-2.0
 * Copyright The LORaster authors */
#ifndef LR_PYTHON_ARRAYS_H
#define LR_PYTHON_ARRAYS_H

#include <lr/vector.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

namespace nb = nanobind;

/* Arrays of Python's libraries as vectors of the library, without a copy. */

using Shape = std::vector<int64_t>;

/* CUDA places of an operator, one for each stream of an array that was passed. Only one thread at a time uses them. */
class CudaPlaces
{
  public:
    explicit CudaPlaces(const lr_log *log) : log(log) {}
    ~CudaPlaces();
    CudaPlaces(const CudaPlaces &) = delete;
    CudaPlaces &operator=(const CudaPlaces &) = delete;

    /* Returns the place for a device and a cudaStream_t, and keeps it for later calls. errors: NULL, logged. */
    lr_place *at(int device, void *stream);

    lr_traffic traffic() const;

  private:
    struct Kept {
        int device;
        void *stream;
        lr_place *place;
    };
    const lr_log *log;
    std::vector<Kept> kept;
};

/* The requirements of an argument. */
struct Wanted {
    const char *name;     /* the argument's name, for messages */
    const Shape *shape;   /* the exact shape; -1 = any number along an axis */
    bool doubles = false; /* true if float64 is also allowed */
    bool writes = false;  /* true if the argument is an output */
    bool cuda = false;    /* true if arrays on a CUDA device are allowed */
    const Shape *mistaken = nullptr; /* the shape of what is often given in its place, or NULL */
    const char *remedy = nullptr;    /* what to write then */
};

/* An argument that is an array: float32 in C order, with the required shape. This object keeps the array's memory
 * alive. An array on a CUDA device is asked for on the current stream of its library, so that work in this stream is
 * done first (loraster._arrays.on_stream).
 * throws: TypeError for an object that is no array, or has other numbers; ValueError for another shape, stride or
 * device, and for an output that is read-only. The message shows how to call the function. */
class Array
{
  public:
    Array() = default;
    Array(nb::handle object, const Wanted &wanted);
    Array(Array &&) = default;
    Array &operator=(Array &&) = default;

    bool is_cuda() const { return device >= 0; }

    /* Makes a vector of the array. An array on a CUDA device is wrapped at one of the operator's places. The
     * interpreter's lock is not needed. errors: LR_NO_DEVICE, LR_FAILED, logged; *vector is zero. */
    lr_status vector(CudaPlaces *places, const lr_log *log, lr_vector *vector);

    /* Waits for work on the array. This is necessary if the array's library does not know the stream and would not
     * wait. errors: as lr_vector_copy. */
    lr_status finish();

    /* Frees the vector of a wrapped array. The places must still be open. */
    void unwrap() { lr_vector_destroy(&wrapped); }

    const float *floats() const { return static_cast<const float *>(memory); }
    int64_t count() const { return num; } /* number of elements of the array */

  private:
    void take(const struct View &view, const Wanted &wanted);

    nb::object capsule;       /* the array's DLPack capsule, if it has one */
    nb::ndarray<nb::ro> held; /* otherwise, the array by the buffer protocol or by __cuda_array_interface__ */
    void *memory = nullptr;
    int64_t num = 0;
    lr_precision precision = LR_FLOAT32;
    int device = -1; /* number of the CUDA device; -1 = the host */
    void *stream = nullptr;
    bool is_ordered = true; /* true if the array's library queues its own work on the stream */
    lr_vector wrapped = {};
};

/* An array on the host, in C order, with numbers of one type and `columns` numbers in each row (0 =
 * one-dimensional). */
template <class Number>
nb::ndarray<const Number, nb::c_contig, nb::device::cpu, nb::ro> rows_of(nb::handle object, const char *name,
                                                                         int64_t columns);

/* Returns a shape in Python's form, such as "(4, 20, 20)". */
std::string shape_text(const int64_t *shape, size_t num_dims);

/* Makes a NumPy array, which then owns the numbers. */
template <class Number> nb::object numpy_array(std::vector<Number> &&numbers, std::initializer_list<size_t> shape)
{
    auto *owner = new std::vector<Number>(std::move(numbers));
    nb::capsule owned(owner, [](void *vector) noexcept { delete static_cast<std::vector<Number> *>(vector); });
    return nb::cast(nb::ndarray<nb::numpy, Number>(owner->data(), shape.size(), shape.begin(), owned));
}

#endif
