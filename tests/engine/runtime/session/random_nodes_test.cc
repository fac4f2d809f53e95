// Every kernel on random nodes that its signature allows, with inputs of the
// right types and random shapes and values: whatever the answer is, it is a
// value or an error, never a crash; and a type that a kernel cannot compute is
// refused when the kernel is made, not when it runs.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/reference/catalog.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/engine/runtime/sample_node.h"

namespace optfarm::runtime {
namespace {

constexpr int kAttempts = 150;

using Random = std::mt19937;

int64_t Below(int64_t limit, Random* random) {
  return static_cast<int64_t>((*random)() % static_cast<uint32_t>(limit));
}

// Mostly small numbers of both signs, now and then an extreme. None is a size
// that could be had but would take gigabytes.
int64_t RandomNumber(Random* random) {
  constexpr int64_t kExtremes[] = {
      std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
      std::numeric_limits<int32_t>::min(), int64_t{1} << 40};
  if (Below(40, random) == 0) return kExtremes[Below(4, random)];
  return Below(7, random) - 2;
}

Shape RandomShape(Random* random) {
  std::vector<int64_t> dims(static_cast<size_t>(Below(6, random)));
  for (int64_t& dim : dims) {
    dim = Below(8, random) == 0 ? 0 : 1 + Below(4, random);
  }
  return *Shape::FromDims(dims);
}

template <typename T>
void FillNumbers(Random* random, Tensor* tensor) {
  for (int64_t i = 0; i < tensor->num_elements(); ++i) {
    tensor->data<T>()[i] = static_cast<T>(RandomNumber(random));
  }
}

template <typename T>
void FillReals(Random* random, Tensor* tensor) {
  for (int64_t i = 0; i < tensor->num_elements(); ++i) {
    const T value = static_cast<T>(Below(200, random) - 60) / T(40);
    const int64_t odd = Below(60, random);
    tensor->data<T>()[i] = odd == 0   ? std::numeric_limits<T>::quiet_NaN()
                           : odd == 1 ? std::numeric_limits<T>::infinity()
                           : odd == 2 ? -std::numeric_limits<T>::max()
                                      : value;
  }
}

Tensor RandomTensor(DataType dtype, const Shape& shape, Random* random) {
  absl::StatusOr<Tensor> made = Tensor::Zeros(dtype, shape);
  // A handle that leads nowhere.
  if (!made.ok()) return Float(0);
  Tensor tensor = *std::move(made);
  switch (dtype) {
    case tensorflow::DT_FLOAT:
      FillReals<float>(random, &tensor);
      break;
    case tensorflow::DT_DOUBLE:
      FillReals<double>(random, &tensor);
      break;
    case tensorflow::DT_INT32:
      FillNumbers<int32_t>(random, &tensor);
      break;
    case tensorflow::DT_INT64:
      FillNumbers<int64_t>(random, &tensor);
      break;
    case tensorflow::DT_BOOL:
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        tensor.data<bool>()[i] = Below(2, random) != 0;
      }
      break;
    case tensorflow::DT_STRING:
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        constexpr const char* kTexts[] = {
            "",     "a b",      "\xff\xd8\xff", "BM", "12", "\x89PNG\r\n\x1a\n",
            "RIFF", "h\xc3\xa4"};
        tensor.data<std::string>()[i] = kTexts[Below(8, random)];
      }
      break;
    default: {
      auto* bytes = static_cast<uint8_t*>(tensor.raw());
      for (int64_t i = 0; i < tensor.TotalBytes(); ++i) {
        bytes[i] = static_cast<uint8_t>((*random)());
      }
    }
  }
  return tensor;
}

// One attribute set at random within what the signature allows.
void Vary(const tensorflow::OpDef::AttrDef& attr, Random* random,
          tensorflow::NodeDef* node) {
  tensorflow::AttrValue& value = (*node->mutable_attr())[attr.name()];
  if (attr.type() == "type") {
    const std::vector<DataType> types = AllowedTypes(attr);
    if (!types.empty()) value.set_type(types[(*random)() % types.size()]);
  } else if (attr.type() == "int") {
    value.set_i(attr.name() == "N" ? 1 + Below(3, random)
                                   : RandomNumber(random));
  } else if (attr.type() == "list(int)") {
    const int count = value.list().i_size();
    value.clear_list();
    for (int i = 0; i < count; ++i) {
      value.mutable_list()->add_i(
          i == 0 || i == count - 1
              ? 1
              : std::max<int64_t>(1, RandomNumber(random)));
    }
  } else if (attr.type() == "string" && attr.has_allowed_values()) {
    const auto& allowed = attr.allowed_values().list().s();
    value.set_s(allowed.Get(static_cast<int>((*random)() % allowed.size())));
  } else if (attr.type() == "float") {
    value.set_f(static_cast<float>(Below(40, random) - 10) / 10.0f);
  } else if (attr.type() == "bool") {
    value.set_b(Below(2, random) != 0);
  }
}

tensorflow::NodeDef RandomNode(const tensorflow::OpDef& def, Random* random) {
  tensorflow::NodeDef node = SampleNode(def);
  for (const auto& attr : def.attr()) {
    if (Below(2, random) == 0) Vary(attr, random, &node);
  }
  return node;
}

// Shapes that often fit together: most inputs have that of the first.
std::vector<Tensor> RandomInputs(const std::vector<DataType>& types,
                                 Random* random) {
  std::vector<Tensor> inputs;
  const Shape common = RandomShape(random);
  for (DataType type : types) {
    const int64_t kind = Below(4, random);
    const Shape shape = kind == 0   ? RandomShape(random)
                        : kind == 1 ? Shape()
                                    : common;
    const Shape vector{Below(5, random)};
    const bool is_index = type == tensorflow::DT_INT32 && Below(2, random) == 0;
    inputs.push_back(
        RandomTensor(graph::BaseType(type), is_index ? vector : shape, random));
  }
  return inputs;
}

TEST(RandomNodesTest, NoKernelCrashesAndTypesAreRefusedWhenItIsMade) {
  int64_t made = 0;
  int64_t computed = 0;
  for (const std::string& op : AllKernels().Ops()) {
    if (op == "Print") continue;  // Accepts everything, and writes it.
    SCOPED_TRACE(op);
    const tensorflow::OpDef& def = *graph::FindOpDef(op);
    Random random(static_cast<uint32_t>(op.size() * 7919 + op[0]));
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const tensorflow::NodeDef node = RandomNode(def, &random);
      const auto types = graph::InputTypes(def, node);
      const auto outputs = graph::OutputCount(def, node);
      if (!types.ok() || !outputs.ok() || *outputs > 100) continue;
      if (!AllKernels().Find(op)->Make(node).ok()) continue;
      ++made;
      const auto result =
          EvaluateNode(node, RandomInputs(*types, &random), *outputs);
      computed += result.ok() ? 1 : 0;
      EXPECT_NE(result.status().code(), absl::StatusCode::kUnimplemented)
          << result.status() << "\n"
          << node.ShortDebugString();
      if (absl::IsUnimplemented(result.status())) break;
    }
  }
  // The sweep reaches beyond the first checks.
  EXPECT_GT(made, 10000);
  EXPECT_GT(computed, 5000);
}

}  // namespace
}  // namespace optfarm::runtime
