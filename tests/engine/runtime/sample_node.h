// Nodes made from an op's signature alone, for tests that walk over all
// kernels: every attribute has a value that the signature allows.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_SAMPLE_NODE_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_SAMPLE_NODE_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/graph/op_defs.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_def.pb.h"

namespace optfarm::runtime {

// The types that tensors of ours can have.
inline std::vector<DataType> AllElementTypes() {
  return {tensorflow::DT_FLOAT,     tensorflow::DT_DOUBLE,
          tensorflow::DT_HALF,      tensorflow::DT_BFLOAT16,
          tensorflow::DT_INT8,      tensorflow::DT_INT16,
          tensorflow::DT_INT32,     tensorflow::DT_INT64,
          tensorflow::DT_UINT8,     tensorflow::DT_UINT16,
          tensorflow::DT_UINT32,    tensorflow::DT_UINT64,
          tensorflow::DT_BOOL,      tensorflow::DT_STRING,
          tensorflow::DT_COMPLEX64, tensorflow::DT_COMPLEX128,
          tensorflow::DT_QINT8,     tensorflow::DT_QUINT8,
          tensorflow::DT_QINT16,    tensorflow::DT_QUINT16,
          tensorflow::DT_QINT32};
}

// The types that the signature lets the attribute have, float first.
// REQUIRES: an attribute of kind type.
inline std::vector<DataType> AllowedTypes(
    const tensorflow::OpDef::AttrDef& attr) {
  if (!attr.has_allowed_values()) return AllElementTypes();
  const auto& allowed = attr.allowed_values().list().type();
  std::vector<DataType> types;
  for (DataType type : AllElementTypes()) {
    if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) {
      types.push_back(type);
    }
  }
  return types;
}

inline void SetSampleAttribute(const tensorflow::OpDef& def,
                               const tensorflow::OpDef::AttrDef& attr,
                               tensorflow::NodeDef* node) {
  tensorflow::AttrValue& value = (*node->mutable_attr())[attr.name()];
  if (attr.has_default_value()) {
    value = attr.default_value();
    return;
  }
  if (attr.type() == "type") {
    const std::vector<DataType> types = AllowedTypes(attr);
    value.set_type(types.empty() ? tensorflow::DT_FLOAT : types.front());
  } else if (attr.type() == "list(type)") {
    value.mutable_list()->add_type(tensorflow::DT_FLOAT);
  } else if (attr.type() == "int") {
    value.set_i(std::max<int64_t>(1, attr.minimum()));
  } else if (attr.type() == "list(int)") {
    const int64_t count = attr.minimum() > 0                    ? attr.minimum()
                          : absl::StrContains(def.name(), "3D") ? 5
                                                                : 4;
    for (int64_t i = 0; i < count; ++i) value.mutable_list()->add_i(1);
  } else if (attr.type() == "string") {
    const auto& allowed = attr.allowed_values().list().s();
    value.set_s(!allowed.empty()            ? allowed.Get(0)
                : attr.name() == "equation" ? "a->a"
                                            : "");
  } else if (attr.type() == "float") {
    value.set_f(1.0f);
  } else if (attr.type() == "list(float)") {
    const int64_t count = std::max<int64_t>(1, attr.minimum());
    for (int64_t i = 0; i < count; ++i) value.mutable_list()->add_f(1.0f);
  } else if (attr.type() == "bool") {
    value.set_b(false);
  } else if (attr.type() == "shape") {
    value.mutable_shape();
  } else if (attr.type() == "tensor") {
    value.mutable_tensor()->set_dtype(tensorflow::DT_FLOAT);
    value.mutable_tensor()->mutable_tensor_shape();
    value.mutable_tensor()->add_float_val(1.0f);
  } else {
    node->mutable_attr()->erase(attr.name());
  }
}

inline tensorflow::NodeDef SampleNode(const tensorflow::OpDef& def) {
  tensorflow::NodeDef node;
  node.set_name("n");
  node.set_op(def.name());
  for (const auto& attr : def.attr()) SetSampleAttribute(def, attr, &node);
  return node;
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_SAMPLE_NODE_H_
