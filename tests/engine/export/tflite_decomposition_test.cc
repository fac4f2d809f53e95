// Ops that TensorFlow Lite has no operator for: the operators that stand in
// their place give the same answers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/export/convert_file.h"
#include "engine/export/export_model.h"
#include "engine/graph/infer_io.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::exporting {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace optfarm::testing;  // NOLINT: the tests' own vocabulary

std::vector<float> Waves(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>((i * 37 + 11) % 101 - 50) / 50.0f);
  }
  return values;
}

// Exports, reads back, and expects the graph's answers. `unequal`: how many
// elements may differ by rounding.
void ExpectSameAnswers(const GraphBuilder& b, int64_t unequal = 0) {
  const graph::Graph graph = b.Build();
  graph::IoRequest request;
  request.take_all_outputs = true;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::GraphIo io,
                               graph::InferIo(graph, request));
  ExportOptions options;
  options.format = ModelFormat::kTflite;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                               ExportModel(graph, io, options));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const ExportDifference difference,
                               CompareExported(graph, io, bytes));
  EXPECT_GT(difference.elements, 0);
  EXPECT_LE(difference.unequal, unequal);
  EXPECT_LE(difference.largest, 1e-6 * difference.magnitude);
}

struct TransposedCase {
  int64_t groups = 1, dilation = 1, stride = 1, before = 0, after = 0, more = 0;
};

class TransposedConvolutionTest
    : public ::testing::TestWithParam<TransposedCase> {};

TEST_P(TransposedConvolutionTest, NeedsNeitherGroupsNorDilations) {
  const TransposedCase& c = GetParam();
  for (const int64_t batch : {int64_t{2}, int64_t{-1}}) {
    GraphBuilder b;
    b.Placeholder("x", {batch, 5, 4, 6});
    // Two outputs for each group.
    b.Floats("w", {3, 2, 2, 6}, Waves(72));
    b.Node("y", "Conv2DTranspose", {"x", "w"},
           FloatT({{"strides", IntsAttr({1, c.stride, c.stride, 1})},
                   {"dilations", IntsAttr({1, c.dilation, c.dilation, 1})},
                   {"explicit_paddings", IntsAttr({0, 0, c.before, c.after,
                                                   c.before, c.after, 0, 0})},
                   {"output_padding", IntsAttr({c.more, c.more})},
                   {"groups", IntAttr(c.groups)}}));
    SCOPED_TRACE(batch);
    ExpectSameAnswers(b, 1000);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Windows, TransposedConvolutionTest,
    ::testing::Values(TransposedCase{}, TransposedCase{.stride = 2},
                      TransposedCase{.groups = 3}, TransposedCase{.groups = 6},
                      TransposedCase{.dilation = 2},
                      TransposedCase{.groups = 2, .dilation = 3, .stride = 2},
                      TransposedCase{.stride = 2, .before = 1, .after = 0},
                      TransposedCase{.groups = 3, .before = 1, .after = 1},
                      TransposedCase{.stride = 2, .before = 1, .more = 1}));

TEST(TfliteDecompositionTest, UpdatesByIndexReplaceWhatWasThere) {
  for (const auto& dims :
       {std::vector<int64_t>{4, 3}, std::vector<int64_t>{4, 1, 2, 3, 2}}) {
    GraphBuilder b;
    b.Placeholder("x", dims);
    std::vector<int64_t> slices = dims;
    slices[0] = 2;
    b.Placeholder("updates", slices);
    b.Ints("indices", {2, 1}, {3, 1});
    b.Node("y", "TensorScatterUpdate", {"x", "indices", "updates"},
           FloatT({{"Tindices", TypeAttr(tensorflow::DT_INT32)}}));
    ExpectSameAnswers(b);
  }
}

TEST(TfliteDecompositionTest, CountsElementsOfOpenShapes) {
  GraphBuilder b;
  b.Placeholder("x", {-1, 3});
  b.Node("size", "Size", {"x"},
         FloatT({{"out_type", TypeAttr(tensorflow::DT_INT64)}}));
  b.Ints("one", {}, {1});
  b.Node("wide", "Cast", {"one"},
         {{"SrcT", TypeAttr(tensorflow::DT_INT32)},
          {"DstT", TypeAttr(tensorflow::DT_INT64)}});
  b.Node("more", "Add", {"size", "wide"},
         {{"T", TypeAttr(tensorflow::DT_INT64)}});
  ExpectSameAnswers(b);
}

TEST(TfliteDecompositionTest, TurnsSixDimensionsAsFewer) {
  GraphBuilder b;
  b.Placeholder("x", {2, 3, 1, 2, 4, 5});
  b.Ints("order", {6}, {0, 1, 4, 2, 5, 3});
  b.Node("y", "Transpose", {"x", "order"},
         FloatT({{"Tperm", TypeAttr(tensorflow::DT_INT32)}}));
  b.Ints("other", {6}, {5, 3, 2, 0, 1, 4});
  b.Node("z", "Transpose", {"x", "other"},
         FloatT({{"Tperm", TypeAttr(tensorflow::DT_INT32)}}));
  ExpectSameAnswers(b);
}

TEST(TfliteDecompositionTest, SeluIsOfTwoActivations) {
  GraphBuilder b;
  b.Placeholder("x", {3, 40});
  b.Node("y", "Selu", {"x"}, FloatT());
  ExpectSameAnswers(b, 120);
}

// Of images that windows which begin inside reach beyond.
TEST(TfliteDecompositionTest, PoolsThatRoundUpHaveMorePadding) {
  for (const char* kind : {"MAX", "AVERAGE"}) {
    for (const bool counts_padding : {false, true}) {
      GraphBuilder b;
      b.Placeholder("x", {1, 2, 6, 8});
      b.Node("y", "WindowPool", {"x"},
             FloatT({{"kind", StringAttr(kind)},
                     {"kernel", IntsAttr({3, 2})},
                     {"strides", IntsAttr({2, 3})},
                     {"dilations", IntsAttr({1, 1})},
                     {"pads", IntsAttr({1, 0, 0, 1})},
                     {"ceil_mode", BoolAttr(true)},
                     {"count_include_pad", BoolAttr(counts_padding)}}));
      SCOPED_TRACE(absl::StrCat(kind, " ", counts_padding));
      ExpectSameAnswers(b, 24);
    }
  }
}

// Outputs "y" of a graph and of one that is written in its place.
ExportDifference DifferenceOf(const GraphBuilder& wanted,
                              const GraphBuilder& written) {
  graph::IoRequest request;
  request.take_all_outputs = true;
  ExportOptions options;
  options.format = ModelFormat::kTflite;
  const graph::Graph graph = wanted.Build(), other = written.Build();
  const graph::GraphIo io = *graph::InferIo(graph, request);
  const std::string bytes =
      *ExportModel(other, *graph::InferIo(other, request), options);
  return *CompareExported(graph, io, bytes);
}

// x + offset in steps of `scale`, behind a Reshape.
GraphBuilder InSteps(float offset, float scale) {
  GraphBuilder b;
  b.Placeholder("x", {1, 40});
  b.Floats("offset", {}, {offset});
  b.Floats("scale", {}, {scale});
  tensorflow::AttrValue zero;
  zero.mutable_tensor()->set_dtype(tensorflow::DT_INT8);
  zero.mutable_tensor()->mutable_tensor_shape();
  zero.mutable_tensor()->add_int_val(0);
  b.Node("zero", "Const", {},
         {{"dtype", TypeAttr(tensorflow::DT_INT8)}, {"value", zero}});
  b.Ints("sizes", {2}, {4, 10});
  b.Node("moved", "Add", {"x", "offset"}, FloatT());
  const Attrs types = {{"Q", TypeAttr(tensorflow::DT_INT8)},
                       {"axis", IntAttr(0)}};
  b.Node("q", "QuantizeLinear", {"moved", "scale", "zero"}, FloatT(types));
  b.Node("d", "DequantizeLinear", {"q", "scale", "zero"}, types);
  b.Node("y", "Reshape", {"d", "sizes"}, FloatT());
  return b;
}

TEST(TfliteDecompositionTest, AStepOfAQuantizedAnswerIsNoLargeDifference) {
  const ExportDifference one =
      DifferenceOf(InSteps(0, 0.25f), InSteps(0.25f, 0.25f));
  EXPECT_FLOAT_EQ(one.step, 0.25f);
  EXPECT_TRUE(one.IsOneStep());
  EXPECT_FALSE(one.IsLarge(0.01));
  const ExportDifference two =
      DifferenceOf(InSteps(0, 0.25f), InSteps(0.5f, 0.25f));
  EXPECT_FALSE(two.IsOneStep());
  EXPECT_TRUE(two.IsLarge(0.01));
}

// Whole numbers that nobody quantized have no steps.
TEST(TfliteDecompositionTest, ADifferentClassIsALargeDifference) {
  const auto classes = [](float offset) {
    GraphBuilder b;
    b.Placeholder("x", {1, 40});
    b.Floats("offset", {}, {offset});
    b.Node("moved", "Add", {"x", "offset"}, FloatT());
    b.Node("y", "Cast", {"moved"},
           {{"SrcT", TypeAttr(tensorflow::DT_FLOAT)},
            {"DstT", TypeAttr(tensorflow::DT_UINT8)}});
    return b;
  };
  const ExportDifference difference = DifferenceOf(classes(1), classes(2));
  EXPECT_EQ(difference.step, 0);
  EXPECT_TRUE(difference.IsLarge(0.1));
}

// A scale that the run computes, for one value and for each channel.
TEST(TfliteDecompositionTest, QuantizesWithComputedScales) {
  for (const bool has_channels : {false, true}) {
    GraphBuilder b;
    b.Placeholder("x", {3, 4});
    b.Ints("axes", {1}, {0});
    b.Ints("all", {2}, {0, 1});
    b.Node("max", "Max", {"x", has_channels ? "axes" : "all"},
           FloatT({{"Tidx", TypeAttr(tensorflow::DT_INT32)}}));
    b.Floats("steps", {}, {100});
    b.Node("scale", "RealDiv", {"max", "steps"}, FloatT());
    b.Node("zero", "Cast", {"scale"},
           {{"SrcT", TypeAttr(tensorflow::DT_FLOAT)},
            {"DstT", TypeAttr(tensorflow::DT_INT8)}});
    const Attrs types = {{"Q", TypeAttr(tensorflow::DT_INT8)},
                         {"axis", IntAttr(1)}};
    b.Node("q", "QuantizeLinear", {"x", "scale", "zero"}, FloatT(types));
    b.Node("y", "DequantizeLinear", {"q", "scale", "zero"}, types);
    SCOPED_TRACE(has_channels);
    ExpectSameAnswers(b);
  }
}

// Real models that need what stands above, by their names alone.
class TfliteConversionTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TfliteConversionTest, GivesTheModelsAnswers) {
  OPTFARM_REQUIRE_TEST_DATA();
  const std::string from = TestDataPath(
      absl::StrCat("interchange/models/onnx/", GetParam(), ".onnx"));
  ConvertOptions options;
  options.written.format = ModelFormat::kTflite;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string line,
      ConvertFile(from, FreshFolder() + "/m.tflite", options));
  EXPECT_THAT(line, HasSubstr("read back: "));
  EXPECT_THAT(line, Not(HasSubstr("which is large")));
}

INSTANTIATE_TEST_SUITE_P(
    Models, TfliteConversionTest,
    ::testing::Values("blazeface_int8", "gtcrn_simple", "ppocr_v2_det",
                      "silero_vad_16k_op15", "silero_vad_half", "silero_vad_v4",
                      "super_resolution_10", "tiny_random_gpt2"),
    [](const ::testing::TestParamInfo<std::string>& test) {
      return test.param;
    });

}  // namespace
}  // namespace optfarm::exporting
