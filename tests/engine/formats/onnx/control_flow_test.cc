// If, Loop, Scan and functions of ONNX models.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/engine/formats/onnx/onnx_model.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::formats {
namespace {

using ::optfarm::testing::StatusIs;
using runtime::Floats;
using runtime::Tensor;
using runtime::ValuesOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBool[] = "type { tensor_type { elem_type: 9 shape {} } }";
constexpr char kInt64[] = "type { tensor_type { elem_type: 7 shape {} } }";

// Doubles x, or adds w to it; both are of the graph around the branches.
std::string Branches(const std::string& condition) {
  return OnnxBytes(absl::StrCat(
      condition, "input { ", FloatValue("x", {2}), " } output { ",
      FloatValue("y", {2}),
      " } initializer { name: 'w' dims: 2 data_type: 1 float_data: 10 "
      "float_data: 20 } node { op_type: 'If' input: 'c' output: 'y' ",
      "attribute { name: 'then_branch' type: GRAPH g { output { ",
      FloatValue("t", {2}),
      " } node { op_type: 'Add' input: 'x' input: 'x' output: 't' } } } ",
      "attribute { name: 'else_branch' type: GRAPH g { output { ",
      FloatValue("e", {2}),
      " } node { op_type: 'Add' input: 'x' input: 'w' output: 'e' } } } }"));
}

TEST(OnnxIfTest, TakesTheBranchOfTheRun) {
  const std::string bytes =
      Branches(absl::StrCat("input { name: 'c' ", kBool, " } "));
  for (const bool condition : {true, false}) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(
        const auto answers,
        Answers(bytes, {Tensor::Scalar(condition), Floats({2}, {1, 2})}));
    EXPECT_THAT(ValuesOf<float>(answers[0]),
                condition ? ElementsAre(2, 4) : ElementsAre(11, 22));
  }
}

TEST(OnnxIfTest, ABranchThatIsAlwaysTakenStandsAlone) {
  const std::string bytes =
      Branches("initializer { name: 'c' data_type: 9 int32_data: 0 } ");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph, ReadOnnxGraph(bytes));
  EXPECT_EQ(graph.library().function_size(), 0);
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                               Answers(bytes, {Floats({2}, {1, 2})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(11, 22));
}

TEST(OnnxLoopTest, CarriesValuesAndCollectsResults) {
  // sum += x, three times at most; the sums are collected.
  const std::string bytes = OnnxBytes(absl::StrCat(
      "input { ", FloatValue("x", {2}), " } input { name: 'm' ", kInt64,
      " } output { ", FloatValue("last", {2}), " } output { ",
      FloatValue("all", {-1, 2}), " } ",
      "node { op_type: 'Loop' input: 'm' input: '' input: 'x' output: 'last' "
      "output: 'all' attribute { name: 'body' type: GRAPH g { ",
      "input { name: 'i' ", kInt64, " } input { name: 'go' ", kBool,
      " } input { ", FloatValue("sum", {2}), " } output { name: 'go_on' ",
      kBool, " } output { ", FloatValue("next", {2}), " } output { ",
      FloatValue("copy", {2}), " } ",
      "node { op_type: 'Identity' input: 'go' output: 'go_on' } "
      "node { op_type: 'Add' input: 'sum' input: 'x' output: 'next' } "
      "node { op_type: 'Identity' input: 'next' output: 'copy' } } } }"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto answers,
      Answers(bytes, {Floats({2}, {1, 2}), Tensor::Scalar(int64_t{3})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(4, 8));
  EXPECT_THAT(ValuesOf<float>(answers[1]), ElementsAre(2, 4, 3, 6, 4, 8));
}

TEST(OnnxScanTest, GoesOverRowsBackwards) {
  const std::string bytes = OnnxBytes(absl::StrCat(
      "input { ", FloatValue("x", {3, 1}), " } output { ",
      FloatValue("end", {1}), " } output { ", FloatValue("sums", {3, 1}),
      " } initializer { name: 'zero' dims: 1 data_type: 1 float_data: 0 } ",
      "node { op_type: 'Scan' input: 'zero' input: 'x' output: 'end' "
      "output: 'sums' attribute { name: 'num_scan_inputs' type: INT i: 1 } "
      "attribute { name: 'scan_input_directions' type: INTS ints: 1 } "
      "attribute { name: 'body' type: GRAPH g { input { ",
      FloatValue("sum", {1}), " } input { ", FloatValue("row", {1}),
      " } output { ", FloatValue("next", {1}), " } output { ",
      FloatValue("out", {1}),
      " } node { op_type: 'Add' input: 'sum' input: 'row' output: 'next' } "
      "node { op_type: 'Identity' input: 'next' output: 'out' } } } }"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                               Answers(bytes, {Floats({3, 1}, {1, 2, 4})}));
  EXPECT_THAT(ValuesOf<float>(answers[0]), ElementsAre(7));
  EXPECT_THAT(ValuesOf<float>(answers[1]), ElementsAre(4, 6, 7));
}

// --- Functions ---------------------------------------------------------------

std::string WithFunction(const std::string& body) {
  return OnnxBytes(
      absl::StrCat("input { ", FloatValue("x", {1, 2}), " } output { ",
                   FloatValue("y", {2, 1}),
                   " } node { op_type: 'Turned' domain: 'mine' input: 'x' "
                   "output: 'y' attribute { name: 'order' type: INTS ints: 1 "
                   "ints: 0 } }"),
      17,
      absl::StrCat("opset_import { domain: 'mine' version: 1 } functions { "
                   "name: 'Turned' domain: 'mine' input: 'a' input: 'none' "
                   "output: 'b' attribute: 'order' opset_import { version: 17 "
                   "} ",
                   body, " }"));
}

TEST(OnnxFunctionTest, IsExpandedWithTheCallersAttributes) {
  const std::string bytes = WithFunction(
      "node { op_type: 'Clip' input: 'a' input: 'none' output: 'c' } "
      "node { op_type: 'Transpose' input: 'c' output: 'b' attribute { "
      "name: 'perm' type: INTS ref_attr_name: 'order' } }");
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto answers,
                               Answers(bytes, {Floats({1, 2}, {3, 4})}));
  EXPECT_EQ(answers[0].shape(), runtime::Shape({2, 1}));
}

// 1,600 calls of a function that has 64 KiB of weights.
TEST(OnnxFunctionTest, RepeatedConstantsTakeSoMuchMemoryTogether) {
  const auto calls = [](const std::string& function) {
    std::string nodes;
    for (int i = 0; i < 40; ++i) {
      absl::StrAppend(&nodes, "node { op_type: '", function,
                      "' domain: 'mine' input: 'v", i, "' output: 'v", i + 1,
                      "' } ");
    }
    return nodes;
  };
  const std::string head =
      "domain: 'mine' input: 'v0' output: 'v40' opset_import { version: 17 } "
      "opset_import { domain: 'mine' version: 1 } ";
  const std::string bytes = OnnxBytes(
      absl::StrCat("input { ", FloatValue("v0", {1}), " } output { ",
                   FloatValue("v40", {16384}), " } ", calls("Outer")),
      17,
      absl::StrCat("opset_import { domain: 'mine' version: 1 } functions { "
                   "name: 'Outer' ",
                   head, calls("Inner"), " } functions { name: 'Inner' ", head,
                   "node { op_type: 'Constant' output: 'w' attribute { name: "
                   "'value' type: TENSOR t { dims: 16384 data_type: 1 "
                   "raw_data: '",
                   std::string(65536, 'a'),
                   "' } } } node { op_type: 'Add' input: 'v0' input: 'w' "
                   "output: 'v40' } }"));
  EXPECT_THAT(ReadOnnxGraph(bytes).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("take far more memory")));
}

TEST(OnnxFunctionTest, ThatCallsItselfIsRefused) {
  EXPECT_THAT(
      ReadOnnxGraph(WithFunction("node { op_type: 'Turned' domain: "
                                 "'mine' input: 'a' output: 'b' }"))
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("calls itself")));
}

}  // namespace
}  // namespace optfarm::formats
