// What is inferred of inputs and outputs, what is asked, and what is refused.

#include "engine/graph/infer_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/attr.h"
#include "tests/engine/graph/model_files.h"
#include "tests/engine/graph/text_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::graph {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FloatOf;
using testing::Floats;
using ::testing::HasSubstr;
using testing::Int32;
using testing::kFloat;
using ::testing::Not;
using testing::TextGraph;

constexpr auto kAsks = absl::StatusCode::kFailedPrecondition;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// "x float [1,4]" for each.
std::vector<std::string> Texts(const std::vector<GraphTensor>& tensors) {
  std::vector<std::string> texts;
  for (const GraphTensor& tensor : tensors) {
    texts.push_back(absl::StrCat(tensor.name, " ", DataTypeName(tensor.dtype),
                                 " ", tensor.shape.ToString()));
  }
  return texts;
}

std::string Net(absl::string_view more = "") {
  return absl::StrCat("x = Placeholder() ", FloatOf({-1, 4}), "\n",
                      "w = Const() ", Floats({4, 3}), "\n",
                      "logits = MatMul(x, w)", kFloat, "\n",
                      "probs = Softmax(logits)", kFloat, "\n", more);
}

TEST(InferIo, FindsTheOnlyEndAndItsPlaceholder) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphIo io, InferIo(TextGraph(Net())));
  EXPECT_THAT(Texts(io.inputs), ElementsAre("x float [1,4]"));
  EXPECT_THAT(Texts(io.outputs), ElementsAre("probs float [1,3]"));
  EXPECT_THAT(io.notes, ElementsAre(HasSubstr("'x'")));
}

TEST(InferIo, TheBatchIsTheCallers) {
  IoRequest request;
  request.batch = 8;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphIo io,
                               InferIo(TextGraph(Net()), request));
  EXPECT_THAT(Texts(io.outputs), ElementsAre("probs float [8,3]"));
  request.batch = 0;
  EXPECT_THAT(InferIo(TextGraph(Net()), request),
              StatusIs(kInvalid, HasSubstr("batch")));
}

TEST(InferIo, BookkeepingIsNoOutput) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const GraphIo io,
      InferIo(TextGraph(Net(absl::StrCat(
          "unused = Const() ", Int32(3), "\n", "done = NoOp(^probs)\n",
          "tag = Const() dtype { type: DT_STRING } value { tensor { dtype: "
          "DT_STRING tensor_shape { } string_val: 't' } }\n",
          "summary = HistogramSummary(tag, probs)", kFloat, "\n")))));
  EXPECT_THAT(Texts(io.outputs), ElementsAre("probs float [1,3]"));
}

TEST(InferIo, ALossRanksBehindAnOutput) {
  const std::string text =
      Net(absl::StrCat("l = Placeholder() ", FloatOf({-1, 3}), "\n",
                       "loss = Sub(logits, l)", kFloat, "\n"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphIo io, InferIo(TextGraph(text)));
  EXPECT_THAT(Texts(io.outputs), ElementsAre("probs float [1,3]"));
  EXPECT_THAT(Texts(io.inputs), ElementsAre("x float [1,4]"));
}

TEST(InferIo, AsksWhichOfSeveralEnds) {
  const Graph graph =
      TextGraph(Net(absl::StrCat("other = Tanh(logits)", kFloat, "\n")));
  EXPECT_THAT(InferIo(graph),
              StatusIs(kAsks, AllOf(HasSubstr("'probs' (Softmax, float [?,3])"),
                                    HasSubstr("'other' (Tanh, float [?,3])"),
                                    HasSubstr("--outputs=probs\n"),
                                    HasSubstr("--outputs=probs,other"))));
  IoRequest request;
  request.take_all_outputs = true;
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphIo io, InferIo(graph, request));
  EXPECT_THAT(Texts(io.outputs),
              ElementsAre("probs float [1,3]", "other float [1,3]"));
}

TEST(InferIo, ATrainingGraphIsAskedForWhatIsNamedLikeAnOutput) {
  const Graph graph = TextGraph(absl::StrCat(
      "x = Placeholder() ", FloatOf({-1, 4}), "\n", "output = Relu(x)", kFloat,
      "\n", "axis = Const() ", Int32(0), "\n", "all = Reshape(output, flat)",
      kFloat, "\n", "flat = Const() ", testing::Int32s({-1}), "\n",
      "accuracy = Mean(all, axis)", kFloat, "\n"));
  EXPECT_THAT(InferIo(graph),
              StatusIs(kAsks, AllOf(HasSubstr("--outputs=output"),
                                    Not(HasSubstr("'all'")))));
}

TEST(InferIo, UnknownNamesGetTheNearest) {
  IoRequest request;
  request.outputs = {"prob"};
  EXPECT_THAT(InferIo(TextGraph(Net()), request),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("--outputs"), HasSubstr("'probs'"))));
  request.outputs = {"probs:1"};
  EXPECT_THAT(InferIo(TextGraph(Net()), request),
              StatusIs(kInvalid, HasSubstr("1 output")));
  request.outputs = {"^probs"};
  EXPECT_THAT(InferIo(TextGraph(Net()), request),
              StatusIs(kInvalid, HasSubstr("control")));
  request.outputs = {"probs", "probs:0"};
  EXPECT_THAT(InferIo(TextGraph(Net()), request),
              StatusIs(kInvalid, HasSubstr("twice")));
}

TEST(InferIo, AnyTensorMayBeFed) {
  IoRequest request;
  request.inputs = {{"logits", std::nullopt, PartialShape({5, 3})}};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphIo io,
                               InferIo(TextGraph(Net()), request));
  EXPECT_THAT(Texts(io.inputs), ElementsAre("logits float [5,3]"));
  EXPECT_THAT(Texts(io.outputs), ElementsAre("probs float [5,3]"));
}

TEST(InferIo, WhatContradictsTheGraphIsRefused) {
  IoRequest request;
  request.inputs = {{"x", std::nullopt, PartialShape({1, 5})}};
  EXPECT_THAT(
      InferIo(TextGraph(Net()), request),
      StatusIs(kInvalid, AllOf(HasSubstr("[?,4]"), HasSubstr("[1,5]"))));
  request.inputs = {{"x", tensorflow::DT_INT32, std::nullopt}};
  EXPECT_THAT(InferIo(TextGraph(Net()), request),
              StatusIs(kInvalid, HasSubstr("float in the graph, not int32")));
  request.inputs = {{"probs", std::nullopt, std::nullopt}};
  request.outputs = {"probs"};
  EXPECT_THAT(InferIo(TextGraph(Net()), request),
              StatusIs(kInvalid, HasSubstr("both as input and as output")));
}

TEST(InferIo, AModelThatCannotRunIsRefused) {
  const Graph graph = TextGraph(
      absl::StrCat("x = Placeholder() dtype { type: DT_FLOAT }\n",
                   "w = Const() ", Floats({4, 3}), "\n", "t = Tanh(x)", kFloat,
                   "\n", "y = MatMul(t, w)", kFloat, "\n"));
  IoRequest request;
  request.inputs = {{"x", std::nullopt, PartialShape({1, 7})}};
  EXPECT_THAT(InferIo(graph, request),
              StatusIs(kInvalid,
                       AllOf(HasSubstr("'y' (MatMul)"), HasSubstr("7 and 4"))));
}

TEST(InferIo, AMissingInputIsNamed) {
  const Graph graph = TextGraph(absl::StrCat(
      "a = Placeholder() ", FloatOf({2}), "\n", "b = Placeholder() ",
      FloatOf({2}), "\n", "y = Add(a, b)", kFloat, "\n"));
  IoRequest request;
  request.inputs = {{"a", std::nullopt, std::nullopt}};
  EXPECT_THAT(InferIo(graph, request),
              StatusIs(kAsks, AllOf(HasSubstr("need input 'b'"),
                                    HasSubstr("--inputs=a,b"))));
}

TEST(InferIo, AsksForUnknownSizes) {
  const Graph graph = TextGraph(absl::StrCat("x = Placeholder() ",
                                             FloatOf({-1, -1, -1, 3}), "\n",
                                             "k = Placeholder() "
                                             "dtype { type: DT_FLOAT }\n",
                                             "y = Mul(x, k)", kFloat, "\n"));
  EXPECT_THAT(InferIo(graph),
              StatusIs(kAsks, AllOf(HasSubstr("[1,?,?,3]"),
                                    HasSubstr("shape of input 'k'"),
                                    HasSubstr("--inputs=x:1xNxNx3,k:SHAPE"))));
}

TEST(InferIo, ConsumersTellTheRankOfOldPlaceholders) {
  const Graph graph = TextGraph(
      "wav = Placeholder() dtype { type: DT_STRING } shape { shape { } }\n"
      "y = DecodeWav(wav) desired_samples { i: 16000 } desired_channels { i: 1 "
      "}\n",
      /*producer=*/0);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphIo io, InferIo(graph));
  EXPECT_THAT(Texts(io.inputs), ElementsAre("wav string []"));
  EXPECT_THAT(Texts(io.outputs), ElementsAre("y float [16000,1]"));
}

TEST(InferIo, DefaultsMakeInputsOptional) {
  const Graph graph = TextGraph(
      absl::StrCat("x = Placeholder() ", FloatOf({2}), "\n", "one = Const() ",
                   Floats({}), "\n", "k = PlaceholderWithDefault(one) ",
                   FloatOf({}), "\n", "y = Mul(x, k)", kFloat, "\n"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const GraphIo io, InferIo(graph));
  EXPECT_THAT(Texts(io.inputs), ElementsAre("x float [2]"));
  EXPECT_THAT(Texts(io.optional_inputs), ElementsAre("k float []"));
}

TEST(InferIo, AGraphWithoutEndsSaysSo) {
  EXPECT_THAT(InferIo(TextGraph("done = NoOp()\n")),
              StatusIs(kAsks, HasSubstr("--outputs=NODE")));
  EXPECT_THAT(InferIo(Graph()), StatusIs(kAsks, HasSubstr("no end")));
}

TEST(InferIo, RealModels) {
  OPTFARM_REQUIRE_TEST_DATA();
  const struct {
    const char* path;
    const char* input;
    const char* output;
  } cases[] = {
      {"mobilenet_v1_0.25_128/frozen_graph.pb", "input float [1,128,128,3]",
       "MobilenetV1/Predictions/Reshape_1 float [1,1001]"},
      {"mobilenet_v1_0.25_128/quantized_graph.pb", "input float [1,128,128,3]",
       "MobilenetV1/Predictions/Reshape_1 float [1,1001]"},
      {"squeezenet_160_aiy/squeezenet_160res_5x5_0.75.pb",
       "input float [1,160,160,3]", "Prediction float [1,1001]"},
      {"conv_actions_frozen/conv_actions_frozen.pb", "wav_data string []",
       "labels_softmax float [1,12]"},
      {"ml_kws/DS_CNN_S.pb", "wav_data string []",
       "labels_softmax float [1,12]"},
      {"ml_kws/LSTM_S.pb", "wav_data string []", "labels_softmax float [?,12]"},
      {"customvision_squeezenet/model.pb", "Placeholder float [1,227,227,3]",
       "loss float [1,2]"},
      {"dotnet_cifar_model/frozen_model.pb", "Input float [1,32,32,3]",
       "Output float [1,10]"},
      {"mnist_softmax/mnist.pb", "input float [1,784]", "softmax float [1,10]"},
      {"tf2onnx_fc/frozen.pb", "X float [1,784]", "output float [1,10]"},
      {"fakequant_mnist_edgetpu/frozen_model.pb",
       "flatten_input float [1,28,28]", "dense_1/Softmax float [1,10]"},
      {"charrnn_lstm/frozen_model_mobile.pb", "input_data int32 [1,1]",
       "probs float [1,57]"},
      {"poets_flowerlike/retrained_graph.pb", "input float [1,128,128,3]",
       "final_result float [?,6]"},
  };
  for (const auto& c : cases) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const std::vector<tensorflow::GraphDef> defs,
        graph::testing::ReadGraphs(
            optfarm::testing::TestDataPath(absl::StrCat("models/", c.path))));
    OPTFARM_ASSERT_OK_AND_ASSIGN(const Graph graph, Graph::FromDef(defs[0]));
    const auto io = InferIo(graph);
    ASSERT_TRUE(io.ok()) << c.path << ": " << io.status();
    EXPECT_THAT(Texts(io->inputs), ElementsAre(c.input)) << c.path;
    EXPECT_THAT(Texts(io->outputs), ElementsAre(c.output)) << c.path;
  }
}

// Whatever the file, the answer is an answer or a question.
TEST(InferIo, EveryModelGivesAnAnswerOrAQuestion) {
  OPTFARM_REQUIRE_TEST_DATA();
  for (const std::string& path : graph::testing::ModelFiles()) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<tensorflow::GraphDef> defs,
                                 graph::testing::ReadGraphs(path));
    for (const tensorflow::GraphDef& def : defs) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Graph graph, Graph::FromDef(def));
      const auto io = InferIo(graph);
      if (!io.ok()) {
        EXPECT_THAT(io, StatusIs(kAsks, HasSubstr("puts="))) << path;
      }
    }
  }
}

}  // namespace
}  // namespace optfarm::graph
