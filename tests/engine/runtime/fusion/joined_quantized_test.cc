// Layers of 8-bit values that write their part of a joined value at once give
// the bits of those that are joined by copying, with each instruction set that
// this machine has.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/fusion/fusions.h"
#include "engine/runtime/reference/catalog.h"
#include "tests/engine/runtime/feature_sets.h"
#include "tests/engine/runtime/fusion/fast_kernels.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using tensorflow::DT_FLOAT;
using tensorflow::DT_QINT8;
using tensorflow::DT_QUINT8;
using ::testing::HasSubstr;

constexpr char kLayer[] = "QuantizedConv2DWithBiasAndReluAndRequantize";

class JoinedCodesTest : public FastKernelsTest {
 protected:
  void SetUp() override {
    FastKernelsTest::SetUp();
    if (AllKernels().Find(kLayer) == nullptr) {
      GTEST_SKIP() << "this build has no whole layers";
    }
    graph_.Placeholder("x", DT_QUINT8);
    graph_.Const("low", Tensor::Scalar(-0.6f));
    graph_.Const("high", Tensor::Scalar(3.1f));
    graph_.Const("axis", Tensor::Scalar<int32_t>(3));
  }

  Tensor Quantized(DataType type, const Shape& shape) {
    Tensor quantized = *Tensor::Allocate(type, shape);
    auto* bytes = static_cast<uint8_t*>(quantized.raw());
    for (int64_t i = 0; i < quantized.num_elements(); ++i) {
      bytes[i] = static_cast<uint8_t>(Pick(0, 255));
    }
    return quantized;
  }

  // Of `input`, which is x or another layer or join.
  void Layer(const std::string& name, const std::string& input,
             const std::vector<int64_t>& filter, float most = 11.0f,
             int64_t stride = 1) {
    const int64_t columns = filter[3];
    const auto add = [&](const char* part, const Tensor& value) {
      graph_.Const(name + part, value);
    };
    add("/w", Quantized(DT_QINT8, *Shape::FromDims(filter)));
    add("/b", Random({columns}, -3, 3));
    const Tensor bounds = Random({columns}, 0.01f, 0.3f);
    std::vector<float> low(columns);
    for (int64_t i = 0; i < columns; ++i) low[i] = -bounds.data<float>()[i];
    add("/low", Tensor::FromValues<float>({columns}, low));
    add("/high", bounds);
    add("/least", Tensor::Scalar(0.0f));
    add("/most", Tensor::Scalar(most));
    const bool is_x = input == "x";
    graph_
        .Node(name, kLayer,
              {input, name + "/w", name + "/b", is_x ? "low" : input + ":1",
               is_x ? "high" : input + ":2", name + "/low", name + "/high",
               name + "/least", name + "/most"})
        .Type("Tinput", DT_QUINT8)
        .Type("Tfilter", DT_QINT8)
        .Type("Tbias", DT_FLOAT)
        .Type("out_type", DT_QUINT8)
        .Text("padding", "SAME");
    tensorflow::NodeDef* node =
        graph_.def()->mutable_node(graph_.def()->node_size() - 1);
    auto* list = (*node->mutable_attr())["strides"].mutable_list();
    for (int64_t s : {int64_t{1}, stride, stride, int64_t{1}}) list->add_i(s);
  }

  void Join(const std::string& name, const std::vector<std::string>& values,
            bool is_v2 = true) {
    std::vector<std::string> inputs = values;
    inputs.insert(is_v2 ? inputs.end() : inputs.begin(), "axis");
    for (const char* end : {":1", ":2"}) {
      for (const std::string& value : values) inputs.push_back(value + end);
    }
    graph_.Node(name, is_v2 ? "QuantizedConcatV2" : "QuantizedConcat", inputs)
        .Type("T", DT_QUINT8)
        .Int("N", static_cast<int64_t>(values.size()));
  }

  static int CopiesIn(const Result& result) {
    return static_cast<int>(std::count_if(
        result.ops.begin(), result.ops.end(), [](const std::string& op) {
          return op == "QuantizedConcat" || op == "QuantizedConcatV2";
        }));
  }

  // `copies`: joins that remain steps of their own.
  void ExpectTheSame(const std::string& fetches, const Shape& shape,
                     int copies) {
    const Tensor x = Quantized(DT_QUINT8, shape);
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Result wanted,
                                 RunGraph(graph_, "x", {x}, fetches, false));
    for (int threads : {1, 3}) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(
          const Result made,
          RunGraph(graph_, "x", {x}, fetches, true, threads));
      EXPECT_EQ(CopiesIn(made), copies);
      ASSERT_EQ(made.values.size(), wanted.values.size());
      for (size_t i = 0; i < made.values.size(); ++i) {
        ASSERT_EQ(made.values[i].shape(), wanted.values[i].shape());
        EXPECT_EQ(std::memcmp(made.values[i].raw(), wanted.values[i].raw(),
                              made.values[i].TotalBytes()),
                  0)
            << "output " << i << " with " << threads << " threads";
      }
    }
  }

  GraphMaker graph_;
};

std::vector<std::string> Int8Sets() {
  std::vector<std::string> names;
  for (const CpuFeatures& set : Int8FeatureSets()) {
    names.push_back(ToString(set));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Sets, JoinedCodesTest, ::testing::ValuesIn(Int8Sets()),
                         SetName);

TEST_P(JoinedCodesTest, LayersWriteTheirParts) {
  Layer("stem", "x", {1, 1, 3, 20});
  Layer("a", "stem", {1, 1, 20, 33});
  Layer("b", "stem", {3, 3, 20, 7});
  Layer("c", "stem", {1, 1, 20, 64});
  Join("y", {"c", "a", "b"});
  Layer("d", "y", {1, 1, 104, 16});
  Layer("e", "y", {3, 3, 104, 70});
  Join("z", {"d", "e"}, false);
  ExpectTheSame("z,z:1,z:2", {2, 9, 11, 3}, 0);
}

TEST_P(JoinedCodesTest, AJoinOfJoinsIsOne) {
  Layer("a", "x", {1, 3, 5, 40}, 6.0f, 2);
  Layer("b", "x", {3, 1, 5, 8}, 6.0f, 2);
  Join("inner", {"b", "a"});
  Layer("c", "x", {1, 1, 5, 3}, 6.0f, 2);
  Join("y", {"c", "inner"});
  ExpectTheSame("y,y:1,y:2", {1, 8, 7, 5}, 0);
}

TEST_P(JoinedCodesTest, OtherRangesAreCopied) {
  Layer("a", "x", {1, 1, 3, 8}, 5.0f);
  Layer("b", "x", {3, 3, 3, 8}, 6.0f);
  Join("y", {"a", "b"});
  ExpectTheSame("y,y:1,y:2", {1, 5, 5, 3}, 1);
}

TEST_P(JoinedCodesTest, WhatOthersReadIsCopied) {
  Layer("a", "x", {1, 1, 3, 8});
  Layer("b", "x", {3, 3, 3, 8});
  Join("y", {"a", "b"});
  Layer("c", "x", {1, 1, 3, 4});
  Layer("d", "x", {1, 1, 3, 6});
  Join("z", {"c", "d"});
  Join("twice", {"z", "z"});
  // A range alone keeps the layer from being part of the join.
  ExpectTheSame("y,a:2,twice", {1, 5, 5, 3}, 2);
}

TEST_P(JoinedCodesTest, ValuesThatAreNoLayersAreCopied) {
  Layer("a", "x", {1, 1, 3, 8});
  graph_
      .Node("y", "QuantizedConcatV2",
            {"a", "x", "axis", "a:1", "low", "a:2", "high"})
      .Type("T", DT_QUINT8)
      .Int("N", 2);
  ExpectTheSame("y,y:1,y:2", {1, 5, 5, 3}, 1);
}

TEST_P(JoinedCodesTest, SizesThatDifferAreRefused) {
  Layer("a", "x", {1, 1, 3, 4});
  Layer("b", "x", {1, 1, 3, 4}, 11.0f, 2);
  Join("y", {"a", "b"});
  EXPECT_THAT(
      RunGraph(graph_, "x", {Quantized(DT_QUINT8, {1, 6, 6, 3})}, "y", true),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("cannot be joined along dimension 3")));
}

TEST_P(JoinedCodesTest, CanBeLeftOut) {
  const FusionLimit limit("join");
  Layer("a", "x", {1, 1, 3, 4});
  Layer("b", "x", {3, 3, 3, 4});
  Join("y", {"a", "b"});
  ExpectTheSame("y,y:1,y:2", {1, 6, 6, 3}, 1);
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
