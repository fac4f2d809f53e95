// Graphs that make no sense, each for one reason, and the shared models, which
// do.

#include "engine/graph/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/engine/graph/model_files.h"
#include "tests/engine/graph/text_graph.h"
#include "tests/support/status_matchers.h"
#include "tests/support/test_data.h"

namespace optfarm::graph {
namespace {

using ::optfarm::testing::IsOk;
using ::optfarm::testing::StatusIs;
using ::testing::AllOf;
using testing::FloatOf;
using ::testing::HasSubstr;
using testing::Int32s;
using testing::kFloat;
using testing::TextGraph;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

const char kInput[] =
    "x = Placeholder() dtype { type: DT_FLOAT } shape { shape { dim { size: 2 "
    "} } }\n";

TEST(Verify, PassesASoundGraph) {
  EXPECT_THAT(
      Verify(TextGraph(absl::StrCat(kInput, "y = Relu(x, ^x)", kFloat))),
      IsOk());
}

TEST(Verify, PortsMustExist) {
  EXPECT_THAT(
      Verify(TextGraph(absl::StrCat(kInput, "y = Relu(x:1)", kFloat))),
      StatusIs(kInvalid, AllOf(HasSubstr("node 'y' (Relu)"), HasSubstr("'x:1'"),
                               HasSubstr("1 output"))));
}

TEST(Verify, NumbersOfInputsMustFit) {
  EXPECT_THAT(Verify(TextGraph(absl::StrCat(kInput, "y = Add(x)", kFloat))),
              StatusIs(kInvalid, HasSubstr("takes 2 inputs but has 1")));
}

TEST(Verify, TypesMustFit) {
  EXPECT_THAT(
      Verify(
          TextGraph(absl::StrCat(kInput, "y = Relu(x) T { type: DT_HALF }"))),
      StatusIs(kInvalid, HasSubstr("input 0 must be half, but 'x' is float")));
  EXPECT_THAT(Verify(TextGraph(absl::StrCat(kInput, "y = Relu(x)"))),
              StatusIs(kInvalid, HasSubstr("attribute 'T' is missing")));
}

TEST(Verify, ReferencesAreTakenWhereTheyAreNeeded) {
  const std::string variable =
      "v = VariableV2() dtype { type: DT_FLOAT } shape { shape { dim { size: 2 "
      "} } }\n";
  EXPECT_THAT(
      Verify(TextGraph(absl::StrCat(kInput, variable, "y = Relu(v)", kFloat,
                                    "\n", "a = Assign(v, x)", kFloat))),
      IsOk());
  EXPECT_THAT(
      Verify(TextGraph(absl::StrCat(kInput, "a = Assign(x, x)", kFloat))),
      StatusIs(kInvalid, HasSubstr("must be float_ref")));
}

TEST(Verify, CyclesMustBeLoops) {
  EXPECT_THAT(
      Verify(TextGraph(absl::StrCat("a = Relu(c)", kFloat, "\nb = Relu(a)",
                                    kFloat, "\nc = Relu(b)", kFloat))),
      StatusIs(kInvalid, HasSubstr("cycle that is not a loop")));
  EXPECT_THAT(Verify(TextGraph(absl::StrCat(kInput, "a = Relu(x, ^b)", kFloat,
                                            "\nb = Relu(a)", kFloat))),
              StatusIs(kInvalid, HasSubstr("cycle that is not a loop")));
  EXPECT_THAT(Verify(TextGraph(absl::StrCat("a = Relu(a)", kFloat))),
              StatusIs(kInvalid, HasSubstr("'a' -> 'a'")));
  // A Merge alone does not make a loop of it.
  EXPECT_THAT(
      Verify(TextGraph(absl::StrCat(kInput, "m = Merge(x, r) N { i: 2 }",
                                    kFloat, "\nr = Relu(m)", kFloat))),
      StatusIs(kInvalid, HasSubstr("cycle that is not a loop")));
  EXPECT_THAT(Verify(TextGraph(absl::StrCat(
                  kInput, "m = Merge(x, n) N { i: 2 }", kFloat, "\nr = Relu(m)",
                  kFloat, "\nn = NextIteration(r)", kFloat))),
              IsOk());
}

TEST(Verify, DamagedConstantsAreNamed) {
  EXPECT_THAT(
      Verify(TextGraph(
          "big = Const() dtype { type: DT_FLOAT } value { tensor { dtype: "
          "DT_FLOAT tensor_content: '0123456789' tensor_shape { dim { size: "
          "1099511627776 } } } }")),
      StatusIs(kInvalid, AllOf(HasSubstr("'big'"), HasSubstr("10 bytes"))));
  EXPECT_THAT(Verify(TextGraph("c = Const() dtype { type: DT_FLOAT }")),
              StatusIs(kInvalid, HasSubstr("must have a 'value'")));
  EXPECT_THAT(
      Verify(TextGraph(
          "c = Const() dtype { type: DT_FLOAT } value { tensor { dtype: "
          "DT_INT32 int_val: 1 tensor_shape { } } }")),
      StatusIs(kInvalid, HasSubstr("declares float but its value is int32")));
}

TEST(Verify, NanIsRefusedOnRequest) {
  const Graph graph = TextGraph(
      "c = Const() dtype { type: DT_FLOAT } value { tensor { dtype: DT_FLOAT "
      "float_val: nan tensor_shape { } } }\n"
      "h = Const() dtype { type: DT_HALF } value { tensor { dtype: DT_HALF "
      "half_val: 31744 tensor_shape { } } }\n");
  EXPECT_THAT(Verify(graph), IsOk());
  VerifyOptions options;
  options.refuse_nan = true;
  EXPECT_THAT(Verify(graph, options),
              StatusIs(kInvalid, AllOf(HasSubstr("'c'"), HasSubstr("NaN"),
                                       ::testing::Not(HasSubstr("'h'")))));
}

TEST(Verify, UnknownOpsAreRefusedOnRequest) {
  const Graph graph = TextGraph(
      absl::StrCat(kInput, "u = FromTheFuture(x)\ny = Relu(u:7)", kFloat));
  EXPECT_THAT(Verify(graph), IsOk());
  VerifyOptions options;
  options.refuse_unknown_ops = true;
  EXPECT_THAT(Verify(graph, options),
              StatusIs(kInvalid, HasSubstr("'u' (FromTheFuture)")));
}

TEST(Verify, FunctionsOfTheGraphAreOps) {
  tensorflow::GraphDef def =
      TextGraph(absl::StrCat(kInput, "y = Twice(x)\nz = Relu(y:1)", kFloat))
          .ToDef();
  tensorflow::OpDef* signature =
      def.mutable_library()->add_function()->mutable_signature();
  signature->set_name("Twice");
  signature->add_input_arg()->set_type(tensorflow::DT_FLOAT);
  signature->add_output_arg()->set_type(tensorflow::DT_FLOAT);
  EXPECT_THAT(Verify(*Graph::FromDef(def)),
              StatusIs(kInvalid, HasSubstr("'y:1'")));
}

TEST(Verify, ManyProblemsAreCut) {
  std::string text = kInput;
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&text, "y", i, " = Relu(x:1)", kFloat, "\n");
  }
  VerifyOptions options;
  options.max_problems = 3;
  EXPECT_THAT(Verify(TextGraph(text), options),
              StatusIs(kInvalid, HasSubstr("and 17 more problems")));
}

TEST(Verify, EveryModelPasses) {
  OPTFARM_REQUIRE_TEST_DATA();
  VerifyOptions options;
  options.refuse_unknown_ops = true;
  options.refuse_nan = true;
  for (const std::string& path : graph::testing::ModelFiles()) {
    OPTFARM_ASSERT_OK_AND_ASSIGN(const std::vector<tensorflow::GraphDef> defs,
                                 graph::testing::ReadGraphs(path));
    for (const tensorflow::GraphDef& def : defs) {
      OPTFARM_ASSERT_OK_AND_ASSIGN(const Graph graph, Graph::FromDef(def));
      EXPECT_THAT(Verify(graph, options), IsOk()) << path;
    }
  }
}

}  // namespace
}  // namespace optfarm::graph
