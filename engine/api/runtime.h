// Optfarm's runtime for C++20: load a TensorFlow graph, make a session, run it.
//
//   auto model = optfarm::api::Model::Load("model.pb");
//   if (!model.ok()) return Fail(model.status().message());
//   auto session = optfarm::api::Session::Create(*model);
//   const int64_t dims[] = {1, 224, 224, 3};
//   auto input = optfarm::api::Tensor::Copy<float>(pixels, dims);
//   auto outputs = session->Run(*input);
//   std::span<const float> scores = (*outputs)[0].data<float>();
//
// A thin layer over c_api.h, in this header alone: what it says on errors,
// threads, ownership and versions holds here. Objects own what they stand for
// and can be moved; an object that was moved from may only be assigned to or
// destroyed. Nothing here throws but std::bad_alloc out of std::string and
// std::vector.

#ifndef OPTFARM_ENGINE_API_RUNTIME_H_
#define OPTFARM_ENGINE_API_RUNTIME_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// Beside this file, in the source tree as in the installation.
#include "c_api.h"

namespace optfarm::api {

// --- Errors ------------------------------------------------------------------

// OK, or a code and a message.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(optfarm_code code, std::string message)
      : code_(code), message_(std::move(message)) {}
  // OWNERSHIP: deletes `status`.
  explicit Status(optfarm_status* status)
      : code_(optfarm_status_code(status)),
        message_(optfarm_status_message(status)) {
    optfarm_status_delete(status);
  }

  bool ok() const { return code_ == OPTFARM_OK; }
  optfarm_code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  optfarm_code code_ = OPTFARM_OK;
  std::string message_;
};

// A value, or why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  // REQUIRES: !status.ok().
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  // REQUIRES: ok().
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

namespace internal {

// Deletes a C object.
template <auto kDelete>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    kDelete(object);
  }
};

template <typename T, auto kDelete>
using Owned = std::unique_ptr<T, Deleter<kDelete>>;

// The dtype that a C++ type's elements have.
template <typename T>
constexpr optfarm_dtype DataTypeOf() {
  if constexpr (std::is_same_v<T, float>) {
    return OPTFARM_FLOAT;
  } else if constexpr (std::is_same_v<T, double>) {
    return OPTFARM_DOUBLE;
  } else if constexpr (std::is_same_v<T, int8_t>) {
    return OPTFARM_INT8;
  } else if constexpr (std::is_same_v<T, int16_t>) {
    return OPTFARM_INT16;
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return OPTFARM_INT32;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return OPTFARM_INT64;
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return OPTFARM_UINT8;
  } else if constexpr (std::is_same_v<T, uint16_t>) {
    return OPTFARM_UINT16;
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    return OPTFARM_UINT32;
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return OPTFARM_UINT64;
  } else {
    static_assert(std::is_same_v<T, bool>, "no tensor has such elements");
    return OPTFARM_BOOL;
  }
}

}  // namespace internal

// --- Tensors -----------------------------------------------------------------

// A dense array in row-major order.
class Tensor {
 public:
  // OWNERSHIP: takes `tensor`.
  explicit Tensor(optfarm_tensor* tensor) : tensor_(tensor) {}

  // Zeros, or empty strings.
  static Result<Tensor> Zeros(optfarm_dtype dtype,
                              std::span<const int64_t> dims) {
    return Made([&](optfarm_tensor** made) {
      return optfarm_tensor_create(dtype, dims.data(), Rank(dims), made);
    });
  }
  // A copy of `values`. ERRORS: INVALID_ARGUMENT unless there are as many as
  // the shape has elements.
  template <typename T>
  static Result<Tensor> Copy(std::span<const T> values,
                             std::span<const int64_t> dims) {
    return Made([&](optfarm_tensor** made) {
      return optfarm_tensor_copy(internal::DataTypeOf<T>(), dims.data(),
                                 Rank(dims), values.data(), values.size_bytes(),
                                 made);
    });
  }
  // Bytes of any type, quantized ones included.
  static Result<Tensor> CopyBytes(optfarm_dtype dtype,
                                  std::span<const std::byte> bytes,
                                  std::span<const int64_t> dims) {
    return Made([&](optfarm_tensor** made) {
      return optfarm_tensor_copy(dtype, dims.data(), Rank(dims), bytes.data(),
                                 bytes.size(), made);
    });
  }
  // The caller's memory, read where it lies until `release` is called; see
  // optfarm_tensor_borrow.
  template <typename T>
  static Result<Tensor> Borrow(std::span<const T> values,
                               std::span<const int64_t> dims,
                               void (*release)(void* context) = nullptr,
                               void* context = nullptr) {
    return Made([&](optfarm_tensor** made) {
      return optfarm_tensor_borrow(internal::DataTypeOf<T>(), dims.data(),
                                   Rank(dims), values.data(),
                                   values.size_bytes(), release, context, made);
    });
  }
  static Result<Tensor> Strings(std::span<const std::string_view> strings,
                                std::span<const int64_t> dims) {
    std::vector<const char*> bytes;
    std::vector<size_t> lengths;
    int64_t elements = 1;
    for (const int64_t dim : dims) elements *= dim;
    if (elements != static_cast<int64_t>(strings.size())) {
      return Status(OPTFARM_INVALID_ARGUMENT,
                    "the number of strings does not fit the shape");
    }
    for (const std::string_view text : strings) {
      bytes.push_back(text.data() != nullptr ? text.data() : "");
      lengths.push_back(text.size());
    }
    return Made([&](optfarm_tensor** made) {
      return optfarm_tensor_strings(dims.data(), Rank(dims), bytes.data(),
                                    lengths.data(), made);
    });
  }

  optfarm_dtype dtype() const { return optfarm_tensor_dtype(get()); }
  std::span<const int64_t> dims() const {
    return {optfarm_tensor_dims(get()),
            static_cast<size_t>(optfarm_tensor_rank(get()))};
  }
  int64_t element_count() const { return optfarm_tensor_element_count(get()); }
  std::span<const std::byte> bytes() const {
    const void* data = optfarm_tensor_data(get());
    return {static_cast<const std::byte*>(data),
            data == nullptr
                ? 0
                : static_cast<size_t>(optfarm_tensor_byte_size(get()))};
  }
  // Empty when the elements are of another type.
  template <typename T>
  std::span<const T> data() const {
    if (dtype() != internal::DataTypeOf<T>()) return {};
    return Span<const T>(optfarm_tensor_data(get()));
  }
  // The same for writing; empty also where the memory is shared.
  template <typename T>
  std::span<T> mutable_data() {
    if (dtype() != internal::DataTypeOf<T>()) return {};
    return Span<T>(optfarm_tensor_mutable_data(tensor_.get()));
  }
  // Element `index` of a tensor of strings. OWNERSHIP: the tensor's.
  Result<std::string_view> string(int64_t index) const {
    const char* text = nullptr;
    size_t length = 0;
    Status status(optfarm_tensor_string(get(), index, &text, &length));
    if (!status.ok()) return status;
    return std::string_view(text, length);
  }

  const optfarm_tensor* get() const { return tensor_.get(); }

 private:
  static int32_t Rank(std::span<const int64_t> dims) {
    return static_cast<int32_t>(dims.size());
  }
  template <typename Make>
  static Result<Tensor> Made(Make make) {
    optfarm_tensor* made = nullptr;
    Status status(make(&made));
    if (!status.ok()) return status;
    return Tensor(made);
  }
  template <typename T, typename Pointer>
  std::span<T> Span(Pointer* data) const {
    return {static_cast<T*>(data),
            data == nullptr ? 0 : static_cast<size_t>(element_count())};
  }

  internal::Owned<optfarm_tensor, optfarm_tensor_delete> tensor_;
};

// --- Models ------------------------------------------------------------------

// One input or output.
struct TensorInfo {
  std::string name;
  optfarm_dtype dtype = OPTFARM_UNKNOWN_TYPE;
  // Absent: not even the rank is known. -1: this dimension is not known.
  std::optional<std::vector<int64_t>> dims;
};

struct ModelOptions {
  // The 32 bytes of an encrypted model's key; empty: what the environment
  // names.
  std::span<const std::byte> key;
};

class Model {
 public:
  static Result<Model> Load(const std::string& path,
                            const ModelOptions& options = {}) {
    return Made(options,
                [&](const optfarm_model_options* wanted, optfarm_model** made) {
                  return optfarm_model_load(path.c_str(), wanted, made);
                });
  }
  // The bytes are not needed afterwards.
  static Result<Model> LoadMemory(std::span<const std::byte> bytes,
                                  const ModelOptions& options = {}) {
    return Made(options,
                [&](const optfarm_model_options* wanted, optfarm_model** made) {
                  return optfarm_model_load_memory(bytes.data(), bytes.size(),
                                                   wanted, made);
                });
  }

  Result<std::vector<TensorInfo>> Inputs() const {
    return List(optfarm_model_input_count, optfarm_model_input);
  }
  Result<std::vector<TensorInfo>> Outputs() const {
    return List(optfarm_model_output_count, optfarm_model_output);
  }

  const optfarm_model* get() const { return model_.get(); }

 private:
  explicit Model(optfarm_model* model) : model_(model) {}

  template <typename Make>
  static Result<Model> Made(const ModelOptions& options, Make make) {
    optfarm_model_options wanted;
    optfarm_model_options_init(&wanted);
    if (!options.key.empty()) wanted.key = options.key.data();
    wanted.key_size = options.key.size();
    optfarm_model* made = nullptr;
    Status status(make(&wanted, &made));
    if (!status.ok()) return status;
    return Model(made);
  }
  template <typename CountFn, typename GetFn>
  Result<std::vector<TensorInfo>> List(CountFn count, GetFn get_info) const {
    size_t size = 0;
    Status status(count(get(), &size));
    if (!status.ok()) return status;
    std::vector<TensorInfo> list;
    for (size_t i = 0; i < size; ++i) {
      optfarm_tensor_info info;
      status = Status(get_info(get(), i, &info));
      if (!status.ok()) return status;
      TensorInfo& added = list.emplace_back();
      added.name = info.name;
      added.dtype = info.dtype;
      if (info.rank >= 0) added.dims.emplace(info.dims, info.dims + info.rank);
    }
    return list;
  }

  internal::Owned<optfarm_model, optfarm_model_delete> model_;
};

// --- Sessions ----------------------------------------------------------------

// Threads that several sessions share; they end with the last of these.
class ThreadPool {
 public:
  // `threads` counts the caller of a run. The others run on `processors` only;
  // empty: on any.
  static Result<ThreadPool> Create(int threads,
                                   std::span<const int32_t> processors = {}) {
    optfarm_thread_pool* made = nullptr;
    Status status(optfarm_thread_pool_create(threads, processors.data(),
                                             processors.size(), &made));
    if (!status.ok()) return status;
    return ThreadPool(made);
  }
  const optfarm_thread_pool* get() const { return pool_.get(); }

 private:
  explicit ThreadPool(optfarm_thread_pool* pool) : pool_(pool) {}
  internal::Owned<optfarm_thread_pool, optfarm_thread_pool_delete> pool_;
};

struct SessionOptions {
  // Threads that one run may use, the caller's included.
  int threads = 1;
  // These threads instead.
  const ThreadPool* thread_pool = nullptr;
  // As optfarm_session_options has it. UNITS: bytes; 0: no limit.
  int64_t packed_weights_limit_bytes = 0;
};

// Lets one thread end the runs of others. OWNERSHIP: outlives those runs.
class CancelToken {
 public:
  static Result<CancelToken> Create() {
    optfarm_cancel* made = nullptr;
    Status status(optfarm_cancel_create(&made));
    if (!status.ok()) return status;
    return CancelToken(made);
  }
  // THREADS: any, at any time.
  void Set() const { optfarm_cancel_set(cancel_.get()); }
  void Reset() const { optfarm_cancel_reset(cancel_.get()); }
  const optfarm_cancel* get() const { return cancel_.get(); }

 private:
  explicit CancelToken(optfarm_cancel* cancel) : cancel_(cancel) {}
  internal::Owned<optfarm_cancel, optfarm_cancel_delete> cancel_;
};

struct RunOptions {
  // The run ends with DEADLINE_EXCEEDED soon after; zero: no limit.
  std::chrono::microseconds time_limit{0};
  const CancelToken* cancel = nullptr;
  // What the run's tensors may take at a time. UNITS: bytes; 0: no limit.
  int64_t memory_limit_bytes = 0;
  // Filled with JSON about the run; optfarm_run_options has its form.
  std::string* profile_json = nullptr;
};

// THREADS: Run may be called from many threads at once.
class Session {
 public:
  // Runs the part of the model that `outputs` need when `inputs` are given; the
  // model's own where a list is empty.
  static Result<Session> Create(const Model& model,
                                const std::vector<std::string>& inputs = {},
                                const std::vector<std::string>& outputs = {},
                                const SessionOptions& options = {}) {
    optfarm_session_options wanted;
    optfarm_session_options_init(&wanted);
    wanted.threads = options.threads;
    if (options.thread_pool != nullptr) {
      wanted.thread_pool = options.thread_pool->get();
    }
    wanted.packed_weights_limit_bytes = options.packed_weights_limit_bytes;
    const std::vector<const char*> in = Pointers(inputs);
    const std::vector<const char*> out = Pointers(outputs);
    optfarm_session* made = nullptr;
    Status status(optfarm_session_create(
        model.get(), in.empty() ? nullptr : in.data(), in.size(),
        out.empty() ? nullptr : out.data(), out.size(), &wanted, &made));
    if (!status.ok()) return status;
    return Session(made);
  }

  std::vector<std::string> input_names() const {
    return Names(optfarm_session_input_count, optfarm_session_input_name);
  }
  std::vector<std::string> output_names() const {
    return Names(optfarm_session_output_count, optfarm_session_output_name);
  }

  // `inputs` in the order of input_names(); returns the outputs in the order of
  // output_names().
  Result<std::vector<Tensor>> Run(std::span<const Tensor> inputs,
                                  const RunOptions& options = {}) const {
    std::vector<const optfarm_tensor*> in;
    for (const Tensor& input : inputs) in.push_back(input.get());
    std::vector<optfarm_tensor*> out(optfarm_session_output_count(get()));
    std::vector<Tensor> outputs;
    outputs.reserve(out.size());
    char* profile = nullptr;
    optfarm_run_options wanted;
    optfarm_run_options_init(&wanted);
    wanted.time_limit_us = options.time_limit.count();
    wanted.memory_limit_bytes = options.memory_limit_bytes;
    if (options.cancel != nullptr) wanted.cancel = options.cancel->get();
    if (options.profile_json != nullptr) wanted.profile_json = &profile;
    Status status(optfarm_session_run(get(), in.data(), in.size(), out.data(),
                                      out.size(), &wanted));
    if (!status.ok()) return status;
    for (optfarm_tensor* tensor : out) outputs.emplace_back(tensor);
    const internal::Owned<char, optfarm_string_delete> text(profile);
    if (text != nullptr) *options.profile_json = text.get();
    return outputs;
  }
  // One input.
  Result<std::vector<Tensor>> Run(const Tensor& input,
                                  const RunOptions& options = {}) const {
    return Run(std::span<const Tensor>(&input, 1), options);
  }

  const optfarm_session* get() const { return session_.get(); }

 private:
  explicit Session(optfarm_session* session) : session_(session) {}

  static std::vector<const char*> Pointers(
      const std::vector<std::string>& names) {
    std::vector<const char*> pointers;
    for (const std::string& name : names) pointers.push_back(name.c_str());
    return pointers;
  }
  template <typename CountFn, typename NameFn>
  std::vector<std::string> Names(CountFn count, NameFn name) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < count(get()); ++i) {
      names.emplace_back(name(get(), i));
    }
    return names;
  }

  internal::Owned<optfarm_session, optfarm_session_delete> session_;
};

}  // namespace optfarm::api

#endif  // OPTFARM_ENGINE_API_RUNTIME_H_
