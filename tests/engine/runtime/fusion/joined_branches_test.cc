// Branches that write their part of a joined image at once give the bits of
// those that are joined by copying.

#ifdef OPTFARM_FAST_KERNELS
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "engine/runtime/fusion/fusions.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

constexpr DataType kFloat = tensorflow::DT_FLOAT;

class JoinedBranchesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!UsedCpuFeatures().avx2 && !UsedCpuFeatures().neon) {
      GTEST_SKIP() << "this processor has no fast kernels for floats";
    }
    graph_.Placeholder("x", kFloat);
    graph_.Const("axis", Tensor::Scalar<int32_t>(3));
  }

  Tensor Random(const std::vector<int64_t>& dims) {
    std::uniform_real_distribution<float> number(-1.0f, 1.0f);
    Tensor made = *Tensor::Allocate(kFloat, *Shape::FromDims(dims));
    for (float& value : made.flat<float>()) value = number(random_);
    return made;
  }

  // Conv2D -> BiasAdd -> Relu; `filter` has four dimensions.
  void Convolution(const std::string& name, const std::string& input,
                   const std::vector<int64_t>& filter, int64_t stride = 1) {
    graph_.Const(name + "/w", Random(filter));
    graph_.Const(name + "/b", Random({filter[3]}));
    graph_.Node(name + "/conv", "Conv2D", {input, name + "/w"})
        .Type("T", kFloat)
        .Text("padding", "SAME")
        .Ints("strides", {1, stride, stride, 1});
    graph_.Node(name + "/biased", "BiasAdd", {name + "/conv", name + "/b"})
        .Type("T", kFloat);
    graph_.Node(name, "Relu", {name + "/biased"}).Type("T", kFloat);
  }
  void Pool(const std::string& name, const std::string& op,
            const std::string& input, int64_t stride = 1) {
    graph_.Node(name, op, {input})
        .Type("T", kFloat)
        .Text("padding", "SAME")
        .Ints("ksize", {1, 3, 3, 1})
        .Ints("strides", {1, stride, stride, 1});
  }
  void Join(const std::string& name, std::vector<std::string> inputs) {
    const auto count = static_cast<int64_t>(inputs.size());
    inputs.push_back("axis");
    graph_.Node(name, "ConcatV2", inputs)
        .Type("T", kFloat)
        .Type("Tidx", tensorflow::DT_INT32)
        .Int("N", count);
  }

  struct Ran {
    std::vector<Tensor> values;
    std::vector<std::string> ops;
  };
  absl::StatusOr<Ran> Run(const std::string& fetches, const Tensor& input,
                          SessionOptions options) {
    OPTFARM_ASSIGN_OR_RETURN(const auto session,
                             graph_.Session("x", fetches, options));
    Ran ran;
    // The second run has the places that the first was watched for.
    for (int i = 0; i < 2; ++i) {
      RunTrace trace;
      OPTFARM_ASSIGN_OR_RETURN(ran.values, session->Run({input}, &trace));
      ran.ops.clear();
      for (const NodeTiming& node : trace.nodes) ran.ops.push_back(node.op);
    }
    return ran;
  }
  static int CopiesIn(const Ran& ran) {
    int copies = 0;
    for (const std::string& op : ran.ops) {
      copies += op == "ConcatV2" || op == "Concat" ? 1 : 0;
    }
    return copies;
  }

  // `copies`: joins that remain steps of their own.
  void ExpectTheSame(const std::string& fetches, const Tensor& input,
                     int copies) {
    for (const bool reuses : {true, false}) {
      SessionOptions options;
      options.threads = 2;
      options.reuse_buffers = reuses;
      absl::StatusOr<Ran> copied;
      {
        const FusionLimit limit("join");
        copied = Run(fetches, input, options);
      }
      OPTFARM_ASSERT_OK(copied.status());
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Ran made,
                                   Run(fetches, input, options));
      EXPECT_GT(CopiesIn(*copied), copies);
      EXPECT_EQ(CopiesIn(made), copies);
      ASSERT_EQ(made.values.size(), copied->values.size());
      for (size_t i = 0; i < made.values.size(); ++i) {
        ASSERT_EQ(made.values[i].shape(), copied->values[i].shape());
        EXPECT_EQ(std::memcmp(made.values[i].raw(), copied->values[i].raw(),
                              made.values[i].TotalBytes()),
                  0);
      }
    }
  }

  std::mt19937 random_{3};
  GraphMaker graph_;
};

TEST_F(JoinedBranchesTest, ConvolutionsAndPoolsWriteTheirParts) {
  Convolution("stem", "x", {1, 1, 3, 20});
  Convolution("a", "stem", {1, 1, 20, 33});
  Pool("pooled", "AvgPool", "stem");
  Convolution("b", "pooled", {3, 3, 20, 7});
  Pool("c", "MaxPool", "stem");
  Join("y", {"c", "a", "b"});
  ExpectTheSame("y", Random({2, 9, 11, 3}), 0);
}

TEST_F(JoinedBranchesTest, AJoinOfJoinsIsOne) {
  Convolution("stem", "x", {1, 1, 3, 16});
  Convolution("a", "stem", {1, 3, 16, 40}, 2);
  Convolution("b", "stem", {3, 1, 16, 8}, 2);
  Join("inner", {"b", "a"});
  Pool("c", "MaxPool", "stem", 2);
  Convolution("d", "stem", {1, 1, 16, 64}, 2);
  Join("y", {"c", "inner", "d"});
  Pool("behind", "AvgPool", "y");
  Convolution("e", "y", {1, 1, 128, 5});
  Join("z", {"e", "behind"});
  ExpectTheSame("z", Random({1, 8, 7, 3}), 0);
}

TEST_F(JoinedBranchesTest, WhatOthersReadIsCopied) {
  Convolution("a", "x", {1, 1, 3, 8});
  Convolution("b", "x", {3, 3, 3, 8});
  Join("y", {"a", "b"});
  Convolution("c", "x", {1, 1, 3, 4});
  Convolution("d", "x", {1, 1, 3, 6});
  Join("z", {"c", "d"});
  ExpectTheSame("y,a,z", Random({1, 5, 5, 3}), 1);
}

TEST_F(JoinedBranchesTest, OtherValuesAndTheSameOneTwiceAreCopied) {
  Convolution("a", "x", {1, 1, 3, 8});
  Join("y", {"a", "x"});
  Convolution("b", "x", {1, 1, 3, 8});
  Join("twice", {"b", "b"});
  Convolution("c", "x", {1, 1, 3, 4});
  Convolution("d", "x", {1, 1, 3, 6});
  Join("z", {"c", "d"});
  ExpectTheSame("y,twice,z", Random({1, 5, 5, 3}), 2);
}

TEST_F(JoinedBranchesTest, AnotherAxisIsCopied) {
  graph_.Const("axis_y", Tensor::Scalar<int32_t>(1));
  Convolution("a", "x", {1, 1, 3, 8});
  Convolution("b", "x", {3, 3, 3, 8});
  graph_.Node("y", "Concat", {"axis_y", "a", "b"})
      .Type("T", kFloat)
      .Int("N", 2);
  graph_.Const("last", Tensor::Scalar<int32_t>(-1));
  Convolution("c", "x", {1, 1, 3, 4});
  Convolution("d", "x", {1, 1, 3, 6});
  graph_.Node("z", "Concat", {"last", "c", "d"}).Type("T", kFloat).Int("N", 2);
  ExpectTheSame("y,z", Random({1, 5, 5, 3}), 1);
}

// A convolution in groups, which the fast kernel leaves to the steps.
TEST_F(JoinedBranchesTest, PartsOfTheReferenceKernelsFitToo) {
  Convolution("a", "x", {1, 1, 3, 4});
  Convolution("b", "x", {3, 3, 1, 6});
  Convolution("c", "x", {1, 1, 3, 5});
  Join("y", {"b", "a", "c"});
  ExpectTheSame("y", Random({1, 6, 5, 3}), 0);
}

TEST_F(JoinedBranchesTest, AnEmptyBatchGivesAnEmptyResult) {
  Convolution("a", "x", {1, 1, 3, 4});
  Convolution("b", "x", {3, 3, 3, 6});
  Join("y", {"b", "a"});
  ExpectTheSame("y", Random({0, 6, 5, 3}), 0);
}

TEST_F(JoinedBranchesTest, SizesThatDifferAreRefused) {
  Convolution("a", "x", {1, 1, 3, 4});
  Convolution("b", "x", {1, 1, 3, 4}, 2);
  Join("y", {"a", "b"});
  const auto ran = Run("y", Random({1, 6, 6, 3}), {});
  EXPECT_EQ(ran.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(std::string(ran.status().message()),
                                "cannot be joined along dimension 3"))
      << ran.status();
}

}  // namespace
}  // namespace optfarm::runtime
#endif  // OPTFARM_FAST_KERNELS
