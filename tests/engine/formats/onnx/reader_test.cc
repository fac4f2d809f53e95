// What an ONNX model becomes as a whole: its interface, its constants, and the
// reasons for which it is refused. tests/golden runs real models.

#include "engine/formats/onnx/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "engine/formats/onnx/lowering_table.h"
#include "engine/formats/onnx/model_context.h"
#include "engine/graph/attr.h"
#include "engine/graph/model_interface.h"
#include "tests/engine/formats/onnx/onnx_model.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::FreshFolder;
using ::optfarm::testing::StatusIs;
using runtime::Floats;
using runtime::ValuesOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = x + w, and z = x * w.
std::string SumModel(const std::string& initializer) {
  return OnnxBytes(absl::StrCat(
      "input { ", FloatValue("in:0", {-1, 2}), " } output { ",
      FloatValue("z/out", {-1, 2}), " } output { ", FloatValue("12", {-1, 2}),
      " } initializer { name: 'w' ", initializer, " } ",
      "node { op_type: 'Add' input: 'in:0' input: 'w' output: '12' } ",
      "node { op_type: 'Mul' input: 'in:0' input: 'w' output: 'z/out' }"));
}
constexpr char kTwoFloats[] =
    "dims: 2 data_type: 1 float_data: 10 float_data: 20";

TEST(OnnxReaderTest, DeclaresInputsAndOutputsByTheFilesNames) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               ReadOnnxGraph(SumModel(kTwoFloats)));
  const graph::ModelInterface interface = graph::ReadModelInterface(graph);
  EXPECT_EQ(interface.format, "onnx");
  ASSERT_EQ(interface.inputs.size(), 1u);
  EXPECT_EQ(interface.inputs[0].name, "in:0");
  EXPECT_THAT(interface.inputs[0].dim_names, ElementsAre("n", ""));
  ASSERT_EQ(interface.outputs.size(), 2u);
  EXPECT_EQ(interface.outputs[0].name, "z/out");
  EXPECT_EQ(interface.outputs[1].name, "12");
}

TEST(OnnxReaderTest, AnswersInTheFilesOrder) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answers,
      Answers(SumModel(kTwoFloats), {Floats({1, 2}, {1, 2})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(10, 40));
  EXPECT_THAT(ValuesOf<float>(answers[1]), ElementsAre(11, 22));
}

TEST(OnnxReaderTest, AnInitializerThatIsListedAsAnInputIsNotAskedFor) {
  const std::string bytes = OnnxBytes(
      absl::StrCat("input { ", FloatValue("x", {2}), " } input { ",
                   FloatValue("w", {2}), " } output { ", FloatValue("y", {2}),
                   " } initializer { name: 'w' ", kTwoFloats,
                   " } node { op_type: 'Add' input: 'x' input: 'w' output: 'y' "
                   "domain: 'ai.onnx' }"),
      17, "opset_import { domain: 'com.microsoft.nchwc' version: 1 }");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                               Answers(bytes, {Floats({2}, {1, 2})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(11, 22));
}

TEST(OnnxReaderTest, APoolThatRoundsUpMayHaveAWindowLargerThanTheImage) {
  for (const char* op : {"MaxPool", "AveragePool"}) {
    const std::string bytes = OnnxBytes(absl::StrCat(
        "input { ", FloatValue("x", {1, 1, 4, 1}), " } output { ",
        FloatValue("y", {1, 1, 2, 1}), " } node { op_type: '", op,
        "' input: 'x' output: 'y' ",
        "attribute { name: 'kernel_shape' type: INTS ints: [2, 2] } ",
        "attribute { name: 'strides' type: INTS ints: [2, 3] } ",
        "attribute { name: 'ceil_mode' type: INT i: 1 } }"));
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto answers,
        Answers(bytes, {Floats({1, 1, 4, 1}, {1, 1, 4, 4})}));
    EXPECT_EQ(answers[0].shape(), runtime::Shape({1, 1, 2, 1}));
    EXPECT_THAT(answers[0].flat<float>(), ElementsAre(1, 4));
  }
}

// The bias of rows of three dimensions joins the product of two, which is what
// layers are to the rest of the engine.
TEST(OnnxReaderTest, ABiasBehindReshapedRowsIsThatOfTheProduct) {
  for (const char* operands :
       {"input: 'p' input: 'b'", "input: 'b' input: 'p'"}) {
    const std::string bytes = OnnxBytes(absl::StrCat(
        "input { ", FloatValue("x", {2, 2, 2}), " } output { ",
        FloatValue("y", {2, 2, 3}),
        " } initializer { name: 'w' dims: 2 dims: 3 data_type: 1 "
        "float_data: [1, 2, 3, 4, 5, 6] } "
        "initializer { name: 'b' dims: 3 data_type: 1 "
        "float_data: [10, 20, 30] } "
        "node { op_type: 'MatMul' input: 'x' input: 'w' output: 'p' } "
        "node { op_type: 'Add' ",
        operands, " output: 'y' }"));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                                 ReadOnnxGraph(bytes));
    std::vector<std::string> before;
    for (const graph::NodeId id : graph.Ids()) {
      const graph::Node& node = graph.node(id);
      if (node.op() != "BiasAdd") continue;
      before.push_back(graph.node(node.inputs()[0].node).op());
    }
    EXPECT_THAT(before, ElementsAre("MatMul"));
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto answers,
        Answers(bytes, {Floats({2, 2, 2}, {1, 0, 0, 1, 1, 1, 2, 0})}));
    EXPECT_EQ(answers[0].shape(), runtime::Shape({2, 2, 3}));
    EXPECT_THAT(answers[0].flat<float>(),
                ElementsAre(11, 22, 33, 14, 25, 36, 15, 27, 39, 12, 24, 36));
  }
}

// A 2x3 filter for each of two channels with strides of 1: every element of the
// result is a sum over the image with the filter turned around. Dilation and
// pads are those of the transposed window.
TEST(OnnxReaderTest, TransposedConvolutionOfStrideOneIsAConvolution) {
  std::vector<float> image, filter;
  for (int i = 0; i < 2 * 4 * 5; ++i)
    image.push_back(static_cast<float>(i % 7));
  for (int i = 0; i < 2 * 2 * 3; ++i)
    filter.push_back(static_cast<float>(i - 4));
  const std::string bytes = OnnxBytes(absl::StrCat(
      "input { ", FloatValue("x", {1, 2, 4, 5}), " } output { ",
      FloatValue("y", {1, 2, 5, 5}),
      " } initializer { name: 'w' dims: 2 dims: 1 dims: 2 dims: 3 data_type: "
      "1 ",
      "float_data: [", absl::StrJoin(filter, ","), "] } ",
      "node { op_type: 'ConvTranspose' input: 'x' input: 'w' output: 'y' ",
      "attribute { name: 'group' type: INT i: 2 } ",
      "attribute { name: 'dilations' type: INTS ints: [2, 1] } ",
      "attribute { name: 'pads' type: INTS ints: [0, 1, 1, 1] } }"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph, ReadOnnxGraph(bytes));
  std::vector<std::string> ops;
  for (const graph::NodeId id : graph.Ids()) ops.push_back(graph.node(id).op());
  EXPECT_THAT(ops, Contains("DepthwiseConv2dNative"));
  std::vector<float> wanted(2 * 5 * 5, 0);
  for (int c = 0; c < 2; ++c) {
    for (int at = 0; at < 4 * 5 * 2 * 3; ++at) {
      const int iy = at / 30, ix = at / 6 % 5, ky = at / 3 % 2, kx = at % 3;
      const int oy = iy + 2 * ky, ox = ix - 1 + kx;
      if (oy >= 5 || ox < 0 || ox >= 5) continue;
      wanted[static_cast<size_t>(c * 25 + oy * 5 + ox)] +=
          image[static_cast<size_t>(c * 20 + iy * 5 + ix)] *
          filter[static_cast<size_t>(c * 6 + ky * 3 + kx)];
    }
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                               Answers(bytes, {Floats({1, 2, 4, 5}, image)}));
  EXPECT_EQ(ValuesOf<float>(answers[0]), wanted);
}

// Text recognition shrinks lines of text in height alone.
TEST(OnnxReaderTest, DepthwiseConvolutionMayHaveTwoStrides) {
  std::vector<float> image, filter;
  for (int i = 0; i < 2 * 6 * 4; ++i)
    image.push_back(static_cast<float>(i % 5));
  for (int i = 0; i < 2 * 3 * 3; ++i)
    filter.push_back(static_cast<float>(i - 8));
  const std::string bytes = OnnxBytes(
      absl::StrCat("input { ", FloatValue("x", {1, 2, 6, 4}), " } output { ",
                   FloatValue("y", {1, 2, 2, 2}),
                   " } initializer { name: 'w' dims: 2 dims: 1 dims: 3 dims: 3 "
                   "data_type: 1 ",
                   "float_data: [", absl::StrJoin(filter, ","), "] } ",
                   "node { op_type: 'Conv' input: 'x' input: 'w' output: 'y' ",
                   "attribute { name: 'group' type: INT i: 2 } ",
                   "attribute { name: 'strides' type: INTS ints: [2, 1] } }"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph, ReadOnnxGraph(bytes));
  std::vector<std::string> ops;
  for (const graph::NodeId id : graph.Ids()) ops.push_back(graph.node(id).op());
  EXPECT_THAT(ops, Contains("DepthwiseConv2dNative"));
  std::vector<float> wanted(2 * 2 * 2, 0);
  for (int at = 0; at < 2 * 2 * 2 * 9; ++at) {
    const int c = at / 36, oy = at / 18 % 2, ox = at / 9 % 2, k = at % 9;
    const int iy = 2 * oy + k / 3, ix = ox + k % 3;
    wanted[static_cast<size_t>(c * 4 + oy * 2 + ox)] +=
        image[static_cast<size_t>(c * 24 + iy * 4 + ix)] *
        filter[static_cast<size_t>(c * 9 + k)];
  }
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                               Answers(bytes, {Floats({1, 2, 6, 4}, image)}));
  EXPECT_EQ(ValuesOf<float>(answers[0]), wanted);
}

TEST(OnnxReaderTest, ReadsNodesThatStandBeforeTheirInputs) {
  // The subgraph of If reads 'd', which a later node makes, and has a name of
  // its own that is also the name of a later output.
  const std::string branch = absl::StrCat(
      "output { ", FloatValue("r", {2}), " } node { op_type: 'Neg' input: 'd' ",
      "output: 'own' } node { op_type: 'Neg' input: 'own' output: 'r' }");
  const std::string bytes = OnnxBytes(absl::StrCat(
      "input { ", FloatValue("x", {2}), " } output { ", FloatValue("y", {2}),
      " } output { ", FloatValue("own", {2}), " } ",
      "node { op_type: 'Neg' input: 'y' output: 'own' } ",
      "node { op_type: 'If' input: 'c' output: 'y' ",
      "attribute { name: 'then_branch' type: GRAPH g { ", branch, " } } ",
      "attribute { name: 'else_branch' type: GRAPH g { ", branch, " } } } ",
      "node { op_type: 'Add' input: 'x' input: 'x' output: 'd' } ",
      "initializer { name: 'c' data_type: 9 int32_data: 1 }"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                               Answers(bytes, {Floats({2}, {1, 2})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(2, 4));
  EXPECT_THAT(ValuesOf<float>(answers[1]), ElementsAre(-2, -4));
}

TEST(OnnxReaderTest, RefusesACycle) {
  const std::string bytes = OnnxBytes(absl::StrCat(
      "input { ", FloatValue("x", {2}), " } output { ", FloatValue("y", {2}),
      " } node { op_type: 'Add' input: 'x' input: 'b' output: 'a' } ",
      "node { op_type: 'Neg' input: 'a' output: 'b' } ",
      "node { op_type: 'Neg' input: 'b' output: 'y' }"));
  EXPECT_THAT(ReadOnnxGraph(bytes).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("node 'a' (Add) reads 'b', which ")));
}

// --- Constants ---------------------------------------------------------------

TEST(OnnxReaderTest, ReadsConstantsFromFilesBesideTheModel) {
  const std::string folder = FreshFolder();
  const float values[] = {0, 10, 20};
  OPTFARM_ASSERT_OK(WriteFileAtomically(
      folder + "/weights.bin",
      absl::string_view(reinterpret_cast<const char*>(values), 12)));
  const auto external = [](const std::string& location, int offset) {
    return SumModel(absl::StrCat(
        "dims: 2 data_type: 1 data_location: EXTERNAL ",
        "external_data { key: 'location' value: '", location, "' } ",
        "external_data { key: 'offset' value: '", offset, "' }"));
  };
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answers,
      Answers(external("weights.bin", 4), {Floats({1, 2}, {1, 2})}, folder));
  EXPECT_THAT(ValuesOf<float>(answers[1]), ElementsAre(11, 22));
  for (const char* location : {"../weights.bin", "/etc/passwd", "", "a//b"}) {
    EXPECT_FALSE(ReadOnnxGraph(external(location, 0), folder).ok()) << location;
  }
  EXPECT_THAT(
      ReadOnnxGraph(external("weights.bin", 8), folder).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("do not fit")));
  EXPECT_THAT(ReadOnnxGraph(external("weights.bin", 4)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("did not come with the model")));
}

TEST(OnnxReaderTest, RefusesConstantsWhoseDataDoNotFit) {
  for (const char* tensor :
       {"dims: 3 data_type: 1 float_data: 10 float_data: 20",
        "dims: 2 data_type: 1 raw_data: '1234567'",
        "dims: -2 data_type: 1 float_data: 10",
        "dims: 4611686018427387904 dims: 4 data_type: 1",
        "dims: 4611686018427387904 data_type: 1 raw_data: '1'"}) {
    EXPECT_THAT(ReadOnnxGraph(SumModel(tensor)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'w'")))
        << tensor;
  }
}

// Each has one element in the file, and takes 32 MiB.
std::string SumOfSparse(int count) {
  std::string graph =
      absl::StrCat("input { ", FloatValue("s_0", {1}), " } output { ",
                   FloatValue(absl::StrCat("s_", count), {8388608}), " } ");
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&graph,
                    "sparse_initializer { dims: 8388608 values { name: "
                    "'w_",
                    i,
                    "' dims: 1 data_type: 1 float_data: 7 } "
                    "indices { dims: 1 data_type: 7 int64_data: ",
                    i, " } } node { op_type: 'Add' input: 's_", i,
                    "' input: 'w_", i, "' output: 's_", i + 1, "' } ");
  }
  return OnnxBytes(graph);
}

TEST(OnnxReaderTest, SparseConstantsTakeSoMuchMemoryTogether) {
  EXPECT_TRUE(ReadOnnxGraph(SumOfSparse(2)).ok());
  EXPECT_THAT(ReadOnnxGraph(SumOfSparse(3)).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("sparse tensor 'w_2' has 8388608 "
                                 "elements, which take far more")));
}

TEST(OnnxReaderTest, KeepsFourBitWeightsQuantized) {
  const std::string bytes = OnnxBytes(
      absl::StrCat("input { ", FloatValue("x", {3}), " } output { ",
                   FloatValue("y", {3}),
                   " } initializer { name: 'q' dims: 3 data_type: 22 raw_data: "
                   "'\\x8f\\x07'"
                   " } initializer { name: 's' data_type: 1 float_data: 0.5 } ",
                   "node { op_type: 'DequantizeLinear' input: 'q' input: 's' "
                   "output: 'w' } ",
                   "node { op_type: 'Add' input: 'x' input: 'w' output: 'y' }"),
      21);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph, ReadOnnxGraph(bytes));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::NodeId w, graph.Get("w"));
  EXPECT_EQ(graph.node(w).op(), "DequantizeLinear");
  EXPECT_EQ(graph::GetInt(graph.node(w).def(), "bits").value(), 4);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                               Answers(bytes, {Floats({3}, {0, 0, 0})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(-0.5f, -4, 3.5f));
}

// --- Refusals ----------------------------------------------------------------

TEST(OnnxReaderTest, SaysAllThatItDoesNotSupport) {
  const std::string bytes = OnnxBytes(absl::StrCat(
      "input { ", FloatValue("x", {2}), " } ",
      "input { name: 's' type { sequence_type { elem_type { tensor_type { "
      "elem_type: 1 } } } } } ",
      "input { name: 't' type { tensor_type { elem_type: 8 } } } output { ",
      FloatValue("y", {2}), " } ",
      "node { op_type: 'Foo' domain: 'my.own' input: 'x' output: 'a' } ",
      "node { op_type: 'Bar' input: 'a' output: 'b' } ",
      "node { op_type: 'Foo' domain: 'my.own' input: 'b' output: 'y' }"));
  const absl::Status status = ReadOnnxGraph(bytes).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented,
                               HasSubstr("operator my.own.Foo of version 1, "
                                         "which 2 nodes have")));
  for (const char* reason :
       {"ai.onnx.Bar of version 17", "input 's': sequences",
        "input 't': tensors of string"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(reason));
  }
}

TEST(OnnxReaderTest, RefusesVersionsThatAreTooNew) {
  const std::string graph =
      absl::StrCat("output { ", FloatValue("y", {}), " }");
  EXPECT_THAT(ReadOnnxGraph(OnnxBytes(graph, 99)).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("opset 99; opsets 1 to")));
  onnx::ModelProto model;
  model.ParseFromString(OnnxBytes(graph));
  model.set_ir_version(40);
  EXPECT_THAT(
      ReadOnnxGraph(model.SerializeAsString()).status(),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("IR version 40")));
}

TEST(OnnxReaderTest, RefusesGraphsThatMakeNoSense) {
  const std::string y = absl::StrCat("output { ", FloatValue("y", {2}), " } ",
                                     "input { ", FloatValue("x", {2}), " } ");
  for (const char* nodes :
       {"", "node { op_type: 'Relu' input: 'nothing' output: 'y' }",
        "node { op_type: 'Relu' output: 'y' }",
        "node { op_type: 'DequantizeLinear' output: 'y' }",
        "node { op_type: 'Relu' input: 'x' output: 'y' } "
        "node { op_type: 'Relu' input: 'x' output: 'y' }",
        "node { op_type: 'Softmax' input: 'x' output: 'y' "
        "attribute { name: 'axis' type: INT i: 7 } }",
        "node { op_type: 'Softmax' input: 'x' output: 'y' "
        "attribute { name: 'axis' type: FLOAT f: 1 } }",
        "node { op_type: 'If' input: 'x' output: 'y' }"}) {
    EXPECT_FALSE(ReadOnnxGraph(OnnxBytes(y + nodes)).ok()) << nodes;
  }
}

// Each operator without inputs, with too few of any kind, and with too many.
TEST(OnnxReaderTest, NoOperatorCrashesItWithOtherInputs) {
  const std::string values = absl::StrCat(
      "input { ", FloatValue("f", {2, 3, 4, 5}), " } input { ",
      FloatValue("s", {}), " } input { ", FloatValue("u", {-1, -1}), " } ",
      "initializer { name: 'w' dims: 2 dims: 2 data_type: 1 float_data: 1 "
      "float_data: 2 float_data: 3 float_data: 4 } initializer { name: 'i' "
      "dims: 2 data_type: 7 int64_data: 1 int64_data: -1 } initializer { "
      "name: "
      "'b' dims: 1 data_type: 3 int32_data: 5 } output { ",
      FloatValue("y", {-1}), " } ");
  const std::vector<std::string> kinds = {"", "f", "s", "u", "w", "i", "b"};
  for (const LoweringRow* row : AllLowerings()) {
    for (size_t count = 0; count <= 7; ++count) {
      for (size_t first = 0; first < kinds.size(); ++first) {
        std::string node = absl::StrCat("node { op_type: '", row->op,
                                        "' domain: '", row->domain, "' ");
        for (size_t i = 0; i < count; ++i) {
          // Of one kind, or in turns.
          const size_t kind = count % 2 == 0 ? first : first + i;
          absl::StrAppend(&node, "input: '", kinds[kind % kinds.size()], "' ");
        }
        absl::StrAppend(&node, "output: 'y' output: 'y2' }");
        const std::string bytes =
            OnnxBytes(values + node, std::min(row->last, kNewestOnnxOpset),
                      "opset_import { domain: 'com.microsoft' version: 1 }");
        ASSERT_FALSE(bytes.empty());
        ReadOnnx(bytes, "the model", "").status().IgnoreError();
        if (count == 0) break;
      }
    }
  }
}

TEST(OnnxReaderTest, NothingThatIsCutOffOrChangedCrashesIt) {
  const std::string bytes = SumModel(kTwoFloats);
  for (size_t size = 0; size < bytes.size(); ++size) {
    ReadOnnx(bytes.substr(0, size), "the model", "").status().IgnoreError();
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const char change : {'\x01', '\x7f', '\x80'}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      ReadOnnx(damaged, "the model", "").status().IgnoreError();
    }
  }
}

}  // namespace
}  // namespace optfarm::formats
