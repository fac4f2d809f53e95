// A dtype that a kernel has no code for is refused when the kernel is made, not
// when it runs: every kernel that can be made runs over tensors of the dtypes
// that its signature asks for, in many shapes, and never answers that something
// is not implemented.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/runtime/core/half.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/variable.h"
#include "engine/runtime/reference/catalog.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/engine/runtime/sample_node.h"

namespace optfarm::runtime {
namespace {

// A tensor of ones (texts "1", false); a handle to such a variable for
// references and resources.
Tensor Ones(DataType dtype, const Shape& shape) {
  const DataType base = graph::BaseType(dtype);
  if (ElementSize(base) == 0 && base != tensorflow::DT_STRING) return Tensor();
  Tensor tensor = *Tensor::Zeros(base, shape);
  const int64_t count = tensor.num_elements();
  if (base == tensorflow::DT_STRING) {
    std::fill_n(tensor.data<std::string>(), count, "1");
  } else if (base == tensorflow::DT_INT32) {
    std::fill_n(tensor.data<int32_t>(), count, 1);
  } else if (base == tensorflow::DT_INT64) {
    std::fill_n(tensor.data<int64_t>(), count, int64_t{1});
  } else if (base == tensorflow::DT_FLOAT) {
    std::fill_n(tensor.data<float>(), count, 1.0f);
  }
  return tensor;
}

Tensor VariableOf(DataType dtype, const Shape& shape) {
  auto variable = std::make_shared<Variable>(dtype);
  EXPECT_TRUE(variable->Assign(Ones(dtype, shape)).ok());
  return Tensor::FromResource(tensorflow::DT_RESOURCE, std::move(variable));
}

// The type that the node's variable has.
DataType ValueType(const tensorflow::NodeDef& node) {
  for (const char* name : {"dtype", "T"}) {
    const auto type = graph::GetTypeOr(node, name, tensorflow::DT_INVALID);
    if (type.ok() && *type != tensorflow::DT_INVALID) return *type;
  }
  return tensorflow::DT_FLOAT;
}

// What the first input and the others have.
struct Shapes {
  Shape first;
  Shape rest;
};

const std::vector<Shapes>& ShapesToTry() {
  static const auto* const kShapes = new std::vector<Shapes>{
      {{}, {}},
      {{1}, {1}},
      {{2}, {2}},
      {{2}, {}},
      {{2, 2}, {}},
      {{2, 2}, {1}},
      {{2, 2}, {2}},
      {{2, 2}, {2, 2}},
      {{2, 2}, {2, 1}},
      {{1, 2, 2}, {1, 2, 2}},
      {{1, 2, 2}, {2}},
      {{1, 2, 2}, {3, 2}},
      {{1, 4, 4, 2}, {1, 1, 2, 2}},
      {{1, 4, 4, 2}, {2}},
      {{1, 4, 4, 2}, {4}},
      {{1, 4, 4, 2}, {4, 2}},
      {{1, 4, 4, 2}, {1, 4, 4, 2}},
      {{1, 2, 4, 4, 2}, {1, 1, 1, 2, 2}},
      {{4}, {1, 4, 4, 2}},
  };
  return *kShapes;
}

// ERRORS: Unimplemented when some run of the kernel is.
absl::Status TryKernel(const tensorflow::NodeDef& node, const Kernel& kernel) {
  const tensorflow::OpDef& def = *graph::FindOpDef(node.op());
  const auto types = graph::InputTypes(def, node);
  const auto outputs = graph::OutputCount(def, node);
  if (!types.ok() || !outputs.ok()) return absl::OkStatus();
  static ThreadPool* const pool = new ThreadPool(1);
  static const auto* const print =
      new std::function<void(absl::string_view)>([](absl::string_view) {});
  for (const Shapes& shapes : ShapesToTry()) {
    std::vector<Tensor> in;
    for (DataType type : *types) {
      const Shape& shape = in.empty() ? shapes.first : shapes.rest;
      const bool is_handle =
          graph::IsRefType(type) || type == tensorflow::DT_RESOURCE;
      in.push_back(is_handle ? VariableOf(ValueType(node), shape)
                             : Ones(type, shape));
    }
    std::vector<Tensor> out(*outputs);
    ResourceContainer resources;
    KernelContext context(absl::MakeSpan(in), absl::MakeSpan(out),
                          KernelEnvironment{pool, print, &resources});
    const absl::Status status = ComputeOrLeave(kernel, &context);
    if (absl::IsUnimplemented(status)) return status;
  }
  return absl::OkStatus();
}

std::string TypesText(const tensorflow::NodeDef& node,
                      const tensorflow::OpDef& def) {
  std::vector<std::string> parts;
  for (const auto& attr : def.attr()) {
    if (attr.type() != "type") continue;
    parts.push_back(
        absl::StrCat(attr.name(), "=",
                     graph::DataTypeName(node.attr().at(attr.name()).type())));
  }
  return absl::StrJoin(parts, " ");
}

TEST(KernelDtypesTest, WhatCanBeMadeIsImplemented) {
  int tried = 0;
  for (const std::string& op : AllKernels().Ops()) {
    const tensorflow::OpDef& def = *graph::FindOpDef(op);
    for (const auto& attr : def.attr()) {
      if (attr.type() != "type") continue;
      for (DataType type : AllowedTypes(attr)) {
        tensorflow::NodeDef node = SampleNode(def);
        graph::SetType(&node, attr.name(), type);
        const auto kernel = AllKernels().Find(op)->Make(node);
        if (!kernel.ok()) continue;
        ++tried;
        const absl::Status status = TryKernel(node, **kernel);
        EXPECT_TRUE(status.ok())
            << op << " with " << TypesText(node, def) << ": " << status;
      }
    }
  }
  EXPECT_GT(tried, 2000);
}

// The arithmetic of a variable in place is its own, and there is none for half.
TEST(KernelDtypesTest, AVariableOfHalvesIsNotAddedTo) {
  for (const char* op : {"AssignAdd", "ScatterAdd"}) {
    tensorflow::NodeDef node = SampleNode(*graph::FindOpDef(op));
    graph::SetType(&node, "T", tensorflow::DT_HALF);
    const auto kernel = AllKernels().Find(op)->Make(node);
    EXPECT_TRUE(absl::IsUnimplemented(kernel.status())) << kernel.status();
  }
}

}  // namespace
}  // namespace optfarm::runtime
