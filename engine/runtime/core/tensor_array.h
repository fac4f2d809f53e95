// TensorFlow's TensorArray: elements by number, written once each, usually one
// in each iteration of a loop.

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_TENSOR_ARRAY_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_TENSOR_ARRAY_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "engine/graph/partial_shape.h"
#include "engine/runtime/core/resource.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::runtime {

struct TensorArrayOptions {
  DataType dtype = tensorflow::DT_INVALID;
  graph::PartialShape element_shape;
  bool is_dynamic = false;
  bool clear_after_read = true;
  bool has_identical_shapes = false;
};

// All errors are InvalidArgument and name the element's number.
class TensorArray final : public Resource {
 public:
  TensorArray(const TensorArrayOptions& options, int64_t size)
      : options_(options), size_(size) {}
  absl::string_view kind() const override { return "tensor array"; }

  DataType dtype() const { return options_.dtype; }
  bool is_dynamic() const { return options_.is_dynamic; }
  int64_t size() const;
  graph::PartialShape element_shape() const;
  // A dynamic array grows to have the element.
  absl::Status Write(int64_t index, Tensor value);
  // An element that was never written is zero where the array knows its shape.
  absl::StatusOr<Tensor> Read(int64_t index);
  absl::Status Close();

 private:
  struct Element {
    Tensor value;
    bool is_cleared = false;
  };

  absl::Status CheckIndex(int64_t index) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckValue(int64_t index, const Tensor& value) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  TensorArrayOptions options_;
  int64_t size_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  // By number, and only what was written: a size costs nothing.
  absl::flat_hash_map<int64_t, Element> elements_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_TENSOR_ARRAY_H_
