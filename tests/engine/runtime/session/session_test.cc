#include "engine/runtime/session/session.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

graph::Graph Parse(const std::string& text) {
  tensorflow::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def));
  absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(std::move(def));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

absl::StatusOr<std::unique_ptr<Session>> Make(const graph::Graph& graph,
                                              const std::string& feeds,
                                              const std::string& fetches) {
  return Session::Create(graph, *graph::ParseTensorNames(feeds),
                         *graph::ParseTensorNames(fetches));
}

std::string Attr(const std::string& name, const std::string& value) {
  return " attr { key: '" + name + "' value { " + value + " } } ";
}
const std::string kFloatT = Attr("T", "type: DT_FLOAT");

std::string FloatConst(const std::string& name, float value) {
  return "node { name: '" + name + "' op: 'Const'" +
         Attr("dtype", "type: DT_FLOAT") +
         Attr("value", "tensor { dtype: DT_FLOAT tensor_shape {} float_val: " +
                           std::to_string(value) + " }") +
         "} ";
}

// y = (x + 2) * x
const std::string& Polynomial() {
  static const std::string text =
      "node { name: 'x' op: 'Placeholder' " + Attr("dtype", "type: DT_FLOAT") +
      "} " + FloatConst("two", 2) +
      "node { name: 'sum' op: 'Add' input: 'x' input: 'two' " + kFloatT + "} " +
      "node { name: 'y' op: 'Mul' input: 'sum' input: 'x' " + kFloatT + "} ";
  return text;
}

TEST(SessionTest, ComputesFetchesFromFeeds) {
  const graph::Graph graph = Parse(Polynomial());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, Make(graph, "x", "y,sum"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto out, session->Run({Tensor::Scalar(3.f)}));
  EXPECT_EQ(out[0].flat<float>()[0], 15.0f);
  EXPECT_EQ(out[1].flat<float>()[0], 5.0f);
}

TEST(SessionTest, InPlaceStepsNeverTouchFeedsOrConstants) {
  const graph::Graph graph = Parse(Polynomial());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, Make(graph, "x", "y"));
  const Tensor x = Tensor::FromValues<float>({2}, {1, 2});
  for (int i = 0; i < 3; ++i) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(auto out, session->Run({x}));
    EXPECT_THAT(out[0].flat<float>(), ElementsAre(3, 8));
    EXPECT_THAT(x.flat<float>(), ElementsAre(1, 2));
  }
}

TEST(SessionTest, AnyTensorMayBeFed) {
  const graph::Graph graph = Parse(Polynomial());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, Make(graph, "sum,x", "y"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto out, session->Run({Tensor::Scalar(10.f), Tensor::Scalar(2.f)}));
  EXPECT_EQ(out[0].flat<float>()[0], 20.0f);
}

TEST(SessionTest, WhatDependsOnConstantsAloneIsNotAStep) {
  const graph::Graph graph = Parse(
      FloatConst("a", 1) + FloatConst("b", 2) +
      "node { name: 'c' op: 'Add' input: 'a' input: 'b' " + kFloatT + "}");
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, Make(graph, "", "c"));
  EXPECT_EQ(session->step_count(), 0);
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto out, session->Run({}));
  EXPECT_EQ(out[0].flat<float>()[0], 3.0f);
}

TEST(SessionTest, AnUnsupportedOpIsFoundAtLoadWithOpNodeTypeAndRemedy) {
  const graph::Graph graph =
      Parse("node { name: 'n' op: 'NoSuchOp' " + kFloatT + "}");
  EXPECT_THAT(
      Make(graph, "", "n"),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(HasSubstr("'n'"), HasSubstr("NoSuchOp with T=float"),
                     HasSubstr("end the graph before it"))));
}

TEST(SessionTest, AnUnsupportedOpThatIsNotNeededDoesNoHarm) {
  const graph::Graph graph =
      Parse(Polynomial() + "node { name: 'n' op: 'NoSuchOp' input: 'y' }");
  OPTFARM_ASSERT_OK(Make(graph, "x", "y"));
}

TEST(SessionTest, AnUnknownOutputOffersTheNearest) {
  const graph::Graph graph = Parse(Polynomial());
  EXPECT_THAT(Make(graph, "x", "sun"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("output 'sun'"), HasSubstr("'sum'"))));
}

TEST(SessionTest, APortThatIsNotThereIsRefused) {
  const graph::Graph graph = Parse(Polynomial());
  EXPECT_THAT(Make(graph, "x", "y:1"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("y:1")));
}

TEST(SessionTest, AFeedOfAnotherDtypeIsRefused) {
  const graph::Graph graph = Parse(Polynomial());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, Make(graph, "x", "y"));
  EXPECT_THAT(session->Run({Tensor::Scalar<int32_t>(3)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'x' is float"), HasSubstr("int32"))));
}

TEST(SessionTest, AnUnfedPlaceholderIsNamed) {
  const graph::Graph graph = Parse(Polynomial());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, Make(graph, "", "y"));
  EXPECT_THAT(session->Run({}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'x'")));
}

TEST(SessionTest, WaitingForAFedPlaceholderIsWaitingForNothing) {
  const graph::Graph graph =
      Parse(Polynomial() +
            "node { name: 'z' op: 'Neg' input: 'two' input: "
            "'^x' " +
            kFloatT + "}");
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, Make(graph, "x", "z"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto out, session->Run({Tensor::Scalar(3.f)}));
  EXPECT_EQ(out[0].flat<float>()[0], -2.0f);
}

// out = p ? data + 1 : data * data
std::string Conditional() {
  return "node { name: 'p' op: 'Placeholder' " +
         Attr("dtype", "type: DT_BOOL") + "} " + FloatConst("one", 1) +
         "node { name: 'data' op: 'Placeholder' " +
         Attr("dtype", "type: DT_FLOAT") + "} " +
         "node { name: 's' op: 'Switch' input: 'data' input: 'p' " + kFloatT +
         "} node { name: 't' op: 'Add' input: 's:1' input: 'one' " + kFloatT +
         "} node { name: 'f' op: 'Mul' input: 's' input: 's' " + kFloatT +
         "} node { name: 'm' op: 'Merge' input: 'f' input: 't' " + kFloatT +
         Attr("N", "i: 2") + "}";
}

TEST(SessionTest, ConditionalRunsOnlyTheTakenBranch) {
  const graph::Graph graph = Parse(Conditional());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, Make(graph, "p,data", "m,m:1"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto taken, session->Run({Tensor::Scalar(true), Tensor::Scalar(5.f)}));
  EXPECT_EQ(taken[0].flat<float>()[0], 6.0f);
  EXPECT_EQ(taken[1].flat<int32_t>()[0], 1);
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto other, session->Run({Tensor::Scalar(false), Tensor::Scalar(5.f)}));
  EXPECT_EQ(other[0].flat<float>()[0], 25.0f);
}

TEST(SessionTest, AFetchOnTheUntakenBranchSaysSo) {
  const graph::Graph graph = Parse(Conditional());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, Make(graph, "p,data", "t"));
  EXPECT_THAT(
      session->Run({Tensor::Scalar(false), Tensor::Scalar(5.f)}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'t'")));
}

TEST(SessionTest, PrintWritesTheLoggedLine) {
  const graph::Graph graph = Parse(
      "node { name: 'x' op: 'Placeholder' " + Attr("dtype", "type: DT_FLOAT") +
      "} node { name: 'x__print__' op: 'Print' input: 'x' input: 'x' " +
      kFloatT + Attr("U", "list { type: DT_FLOAT }") +
      Attr("message", "s: ';x__print__;__range:'") + "}");
  std::vector<std::string> lines;
  SessionOptions options;
  options.print = [&](absl::string_view line) { lines.emplace_back(line); };
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto session,
      Session::Create(graph, *graph::ParseTensorNames("x"),
                      *graph::ParseTensorNames("x__print__"), options));
  OPTFARM_ASSERT_OK(session->Run({Tensor::Scalar(-20.5f)}));
  EXPECT_THAT(lines, ElementsAre(StartsWith(";x__print__;__range:[-20.5]")));
}

TEST(SessionTest, TraceListsEveryStepInOrder) {
  const graph::Graph graph = Parse(Polynomial());
  // Each node is a step of its own.
  SessionOptions options;
  options.fast_kernels = false;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      auto session, Session::Create(graph, *graph::ParseTensorNames("x"),
                                    *graph::ParseTensorNames("y"), options));
  RunTrace trace;
  OPTFARM_ASSERT_OK(session->Run({Tensor::Scalar(3.f)}, &trace));
  ASSERT_GE(trace.nodes.size(), 2u);
  EXPECT_EQ(trace.nodes[trace.nodes.size() - 2].name, "sum");
  EXPECT_EQ(trace.nodes.back().op, "Mul");
  EXPECT_EQ(trace.nodes.back().output_bytes, 4);
  ASSERT_EQ(trace.nodes.back().outputs.size(), 1u);
  EXPECT_EQ(trace.nodes.back().outputs[0].dtype, tensorflow::DT_FLOAT);
  EXPECT_EQ(trace.nodes.back().outputs[0].shape, Shape());
}

TEST(SessionTest, ManyThreadsMayRunOneSession) {
  const graph::Graph graph = Parse(Polynomial());
  OPTFARM_ASSERT_OK_AND_ASSIGN(auto session, Make(graph, "x", "y"));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&session, t] {
      for (int i = 0; i < 200; ++i) {
        const float x = static_cast<float>(t);
        const auto out = session->Run({Tensor::Scalar(x)});
        ASSERT_TRUE(out.ok());
        ASSERT_EQ((*out)[0].flat<float>()[0], (x + 2) * x);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace optfarm::runtime
