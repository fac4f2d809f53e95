// Building and running one op in a test:
//   OPTFARM_ASSERT_OK_AND_ASSIGN(
//       Tensor y, Op("Relu").In(Floats({2}, {-1, 2})).Run());
//   EXPECT_THAT(ValuesOf<float>(y), ElementsAre(0, 2));

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_RUN_OP_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_RUN_OP_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/attr.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/reference/catalog.h"

namespace optfarm::runtime {

class Op {
 public:
  explicit Op(const std::string& op) {
    node_.set_name("n");
    node_.set_op(op);
  }

  Op& Int(const char* name, int64_t value) {
    graph::SetInt(&node_, name, value);
    return *this;
  }
  Op& Float(const char* name, float value) {
    graph::SetFloat(&node_, name, value);
    return *this;
  }
  Op& Bool(const char* name, bool value) {
    graph::SetBool(&node_, name, value);
    return *this;
  }
  Op& Text(const char* name, const std::string& value) {
    graph::SetString(&node_, name, value);
    return *this;
  }
  Op& Type(const char* name, DataType value) {
    graph::SetType(&node_, name, value);
    return *this;
  }
  Op& Ints(const char* name, const std::vector<int64_t>& values) {
    auto* list = (*node_.mutable_attr())[name].mutable_list();
    for (int64_t value : values) list->add_i(value);
    return *this;
  }
  Op& In(Tensor input) {
    inputs_.push_back(std::move(input));
    return *this;
  }

  absl::StatusOr<std::vector<Tensor>> RunAll(int outputs) const {
    return EvaluateNode(node_, inputs_, outputs);
  }
  absl::StatusOr<Tensor> Run() const {
    auto outputs = RunAll(1);
    if (!outputs.ok()) return outputs.status();
    return (*outputs)[0];
  }

 private:
  tensorflow::NodeDef node_;
  std::vector<Tensor> inputs_;
};

inline Tensor Floats(const Shape& shape, const std::vector<float>& values) {
  return Tensor::FromValues<float>(shape, values);
}
inline Tensor Ints(const Shape& shape, const std::vector<int32_t>& values) {
  return Tensor::FromValues<int32_t>(shape, values);
}
// A vector of integers: axes, sizes, permutations.
inline Tensor Ints(const std::vector<int32_t>& values) {
  return Ints({static_cast<int64_t>(values.size())}, values);
}
inline Tensor Int(int32_t value) { return Tensor::Scalar<int32_t>(value); }
inline Tensor Float(float value) { return Tensor::Scalar<float>(value); }
inline Tensor Bool(bool value) { return Tensor::Scalar<bool>(value); }

// Not a vector<bool>'s proxies: a copy whose elements compare as numbers.
template <typename T>
auto ValuesOf(const Tensor& tensor) {
  using Element = std::conditional_t<std::is_same_v<T, bool>, int, T>;
  const T* data = tensor.data<T>();
  return std::vector<Element>(data, data + tensor.num_elements());
}

// 0, 1, 2, ... in the shape.
inline Tensor Counted(const Shape& shape) {
  std::vector<float> values(shape.num_elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return Floats(shape, values);
}

// Repeatable values within [-1, 1), no two neighbours alike.
inline Tensor Scattered(const Shape& shape, uint32_t seed) {
  std::vector<float> values(shape.num_elements());
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1.0f;
  }
  return Floats(shape, values);
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_RUN_OP_H_
