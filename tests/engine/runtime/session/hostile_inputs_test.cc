// Every kernel against inputs and attributes that make no sense: whatever the
// answer is, it is a status or a tensor, never a crash.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/graph/op_defs.h"
#include "engine/runtime/core/tensor_array.h"
#include "engine/runtime/core/variable.h"
#include "engine/runtime/reference/catalog.h"
#include "tests/engine/runtime/run_op.h"

namespace optfarm::runtime {
namespace {

using Random = std::mt19937;

template <typename T>
const T& Pick(const std::vector<T>& from, Random* random) {
  return from[(*random)() % from.size()];
}

// No size here is large enough to exhaust memory, nor small enough to be
// refused by arithmetic alone.
std::vector<Tensor> HostileTensors() {
  const int64_t extremes[] = {std::numeric_limits<int64_t>::min(), -1,
                              std::numeric_limits<int64_t>::max()};
  const int32_t small_extremes[] = {std::numeric_limits<int32_t>::min(), -2};
  const std::string words[] = {"RIFF", ""};
  const float odd[] = {NAN, INFINITY, -1.0f, 0.0f};
  return {
      Float(1.5f),
      Float(-INFINITY),
      Int(0),
      Int(1),
      Int(-1),
      Int(3),
      Bool(true),
      Ints(std::vector<int32_t>()),
      Ints({2}),
      Ints({0, 1}),
      Ints({2, 2}),
      Ints({-1, 2}),
      Ints({1, 2, 3, 4}),
      Ints({0, 0, 0, 0}),
      Ints({4, 2}, {0, 1, 1, 0, 2, 2, 0, 0}),
      Ints({2, 2}, {1, 1, 0, 2}),
      Tensor::FromValues<int32_t>({2}, small_extremes),
      Tensor::FromValues<int64_t>({3}, extremes),
      Tensor::FromValues<std::string>({2}, words),
      Tensor::Scalar<std::string>("RIFF\x10\0\0\0WAVEfmt "),
      Tensor::FromValues<float>({4}, odd),
      Counted({0}),
      Counted({2}),
      Counted({3}),
      Counted({2, 3}),
      Counted({0, 3}),
      Counted({2, 2, 2}),
      Counted({1, 4, 4, 2}),
      Counted({3, 3, 2, 2}),
      Counted({1, 0, 4, 2}),
      Counted({2, 3, 0, 2}),
      Counted({1, 1, 1, 1, 1, 1, 1, 2}),
      Tensor::Scalar<double>(2.0),
      Tensor::Scalar<uint8_t>(200),
      Tensor::FromResource(tensorflow::DT_RESOURCE,
                           std::make_shared<Variable>(tensorflow::DT_FLOAT)),
      Tensor::FromResource(
          tensorflow::DT_RESOURCE,
          std::make_shared<TensorArray>(TensorArrayOptions(), 3))};
}

tensorflow::NodeDef HostileNode(const std::string& op, Random* random) {
  tensorflow::NodeDef node;
  node.set_name("n");
  node.set_op(op);
  const std::vector<std::vector<int64_t>> lists = {
      {1, 1, 1, 1},
      {1, 2, 2, 1},
      {1, 3, 1, 1},
      {1, 0, 1, 1},
      {1, 1},
      {},
      {-1, -1, -1, -1},
      {1, std::numeric_limits<int64_t>::max(), 1, 1},
      {0, 0, 1, 1, 2, 0, 0, 0}};
  const std::vector<int64_t> numbers = {0,
                                        1,
                                        2,
                                        3,
                                        -1,
                                        7,
                                        40,
                                        std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min()};
  for (const char* name :
       {"strides", "ksize", "dilations", "squeeze_dims", "explicit_paddings"}) {
    if ((*random)() % 4 == 0) continue;
    auto* list = (*node.mutable_attr())[name].mutable_list();
    for (int64_t value : Pick(lists, random)) list->add_i(value);
  }
  for (const char* name :
       {"axis", "num_bits", "block_size", "depth_radius", "window_size",
        "stride", "desired_samples", "begin_mask", "ellipsis_mask",
        "shrink_axis_mask", "new_axis_mask", "k", "summarize",
        "dct_coefficient_count", "filterbank_channel_count"}) {
    if ((*random)() % 3 == 0) graph::SetInt(&node, name, Pick(numbers, random));
  }
  graph::SetString(&node, "padding",
                   Pick<std::string>({"SAME", "VALID", "EXPLICIT"}, random));
  graph::SetString(&node, "data_format",
                   Pick<std::string>({"NHWC", "NHWC", "NCHW"}, random));
  graph::SetString(
      &node, "mode",
      Pick<std::string>({"REFLECT", "SYMMETRIC", "MIN_FIRST", "SCALED"},
                        random));
  graph::SetType(&node, "DstT",
                 Pick<DataType>({tensorflow::DT_INT32, tensorflow::DT_HALF,
                                 tensorflow::DT_UINT8, tensorflow::DT_STRING},
                                random));
  for (const char* name : {"N", "num", "num_split"}) {
    graph::SetInt(&node, name, static_cast<int64_t>(1 + (*random)() % 3));
  }
  graph::SetFloat(&node, "variance_epsilon", 0.0f);
  graph::SetBool(&node, "scale_after_normalization", true);
  return node;
}

// As many as the executor would give it.
int OutputsOf(const tensorflow::NodeDef& node) {
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  if (def == nullptr) return 1;
  const auto count = graph::OutputCount(*def, node);
  return count.ok() ? static_cast<int>(*count) : 2;
}

// Mostly as many as the signature says. Kernels on quantized values rely on
// that: the executor checks it.
size_t InputsOf(const tensorflow::NodeDef& node, Random* random) {
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  const bool is_on_codes = absl::StrContains(node.op(), "uanti");
  if (def == nullptr || (!is_on_codes && (*random)() % 4 == 0)) {
    return (*random)() % 6;
  }
  const auto count = graph::InputCount(*def, node);
  return count.ok() ? static_cast<size_t>(*count) : (*random)() % 6;
}

TEST(HostileInputsTest, NoKernelCrashes) {
  Random random(20240229);
  const std::vector<Tensor> tensors = HostileTensors();
  int64_t accepted = 0;
  for (const std::string& op : AllKernels().Ops()) {
    if (op == "Print") continue;  // Accepts everything, and writes it.
    SCOPED_TRACE(op);
    for (int attempt = 0; attempt < 400; ++attempt) {
      const tensorflow::NodeDef node = HostileNode(op, &random);
      std::vector<Tensor> inputs(InputsOf(node, &random));
      for (Tensor& input : inputs) input = Pick(tensors, &random);
      accepted += EvaluateNode(node, inputs, OutputsOf(node)).ok() ? 1 : 0;
    }
  }
  // The sweep reaches beyond the first checks.
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace optfarm::runtime
