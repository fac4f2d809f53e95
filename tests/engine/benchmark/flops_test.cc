#include "engine/benchmark/flops.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace optfarm::benchmark {
namespace {

// A 3x3 convolution from 2 to 5 channels, then a matrix product that the
// outputs do not need.
constexpr char kGraph[] = R"(
  node { name: "x" op: "Placeholder"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "shape" value { shape { dim { size: -1 } dim { size: 8 }
                                        dim { size: 8 } dim { size: 2 } } } } }
  node { name: "w" op: "Const"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {
      dim { size: 3 } dim { size: 3 } dim { size: 2 } dim { size: 5 } }
      float_val: 1 } } } }
  node { name: "conv" op: "Conv2D" input: "x" input: "w"
    attr { key: "T" value { type: DT_FLOAT } }
    attr { key: "strides" value { list { i: 1 i: 1 i: 1 i: 1 } } }
    attr { key: "padding" value { s: "SAME" } } }
  node { name: "v" op: "Const"
    attr { key: "dtype" value { type: DT_FLOAT } }
    attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape {
      dim { size: 7 } dim { size: 3 } } float_val: 1 } } } }
  node { name: "product" op: "MatMul" input: "v" input: "v"
    attr { key: "transpose_a" value { b: true } }
    attr { key: "T" value { type: DT_FLOAT } } }
)";

absl::StatusOr<FlopCount> Count(const std::vector<std::string>& outputs) {
  tensorflow::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kGraph, &def));
  auto graph = graph::Graph::FromDef(std::move(def));
  if (!graph.ok()) return graph.status();
  graph::IoRequest request;
  request.outputs = outputs;
  auto io = graph::InferIo(*graph, request);
  if (!io.ok()) return io.status();
  return CountFlops(*graph, *io);
}

TEST(FlopsTest, ConvolutionIsTwoForEachMultiplyAdd) {
  const auto count = Count({"conv"});
  OPTFARM_ASSERT_OK(count);
  EXPECT_EQ(count->flops, 8 * 8 * 5 * 3 * 3 * 2 * 2);
  EXPECT_EQ(count->unknown_nodes, 0);
  ASSERT_EQ(count->nodes.size(), 1u);
  EXPECT_EQ(count->nodes[0].name, "conv");
  EXPECT_EQ(count->nodes[0].flops, count->flops);
}

TEST(FlopsTest, OpsAreSummedLargestFirst) {
  const auto count = Count({"conv", "product"});
  OPTFARM_ASSERT_OK(count);
  ASSERT_EQ(count->ops.size(), 2u);
  EXPECT_EQ(count->ops[0].op, "Conv2D");
  EXPECT_EQ(count->ops[1].op, "MatMul");
  EXPECT_EQ(count->ops[1].nodes, 1);
  EXPECT_EQ(count->ops[0].flops + count->ops[1].flops, count->flops);
}

TEST(FlopsTest, LeastRunTimeIsArithmeticAtFullSpeed) {
  FlopCount count;
  count.flops = 5e9;
  EXPECT_EQ(LeastRunTime(count, 10), absl::Milliseconds(500));
}

TEST(FlopsTest, TransposedMatrixIsReadTheOtherWay) {
  const auto count = Count({"product"});
  OPTFARM_ASSERT_OK(count);
  EXPECT_EQ(count->flops, 3 * 3 * 7 * 2);
}

}  // namespace
}  // namespace optfarm::benchmark
