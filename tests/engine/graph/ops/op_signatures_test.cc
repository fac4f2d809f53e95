// The reader of the signature notation.

#include "engine/graph/ops/op_signatures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/string_view.h"
#include "engine/graph/op_defs.h"
#include "tests/support/status_matchers.h"

namespace optfarm::graph {
namespace {

using ::optfarm::testing::StatusIs;
using tensorflow::OpDef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(OpSignatures, ReadsArgumentsOfEveryForm) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<OpDef> ops,
      ParseOpSignature("Thing",
                       "(a: T, b: &float, c: N*T, d: N*&string, e: Ts)\n"
                       "  -> (out: &T)\n"
                       "  | T: type; N: int >= 2; Ts: list(type) >= 1"));
  ASSERT_THAT(ops, SizeIs(1));
  const OpDef& op = ops[0];
  EXPECT_EQ(op.name(), "Thing");
  ASSERT_EQ(op.input_arg_size(), 5);
  EXPECT_EQ(op.input_arg(0).type_attr(), "T");
  EXPECT_FALSE(op.input_arg(0).is_ref());
  EXPECT_EQ(op.input_arg(1).type(), tensorflow::DT_FLOAT);
  EXPECT_TRUE(op.input_arg(1).is_ref());
  EXPECT_EQ(op.input_arg(2).number_attr(), "N");
  EXPECT_EQ(op.input_arg(2).type_attr(), "T");
  EXPECT_EQ(op.input_arg(3).number_attr(), "N");
  EXPECT_EQ(op.input_arg(3).type(), tensorflow::DT_STRING);
  EXPECT_TRUE(op.input_arg(3).is_ref());
  EXPECT_EQ(op.input_arg(4).type_list_attr(), "Ts");
  ASSERT_EQ(op.output_arg_size(), 1);
  EXPECT_TRUE(op.output_arg(0).is_ref());
  EXPECT_TRUE(op.attr(1).has_minimum());
  EXPECT_EQ(op.attr(1).minimum(), 2);
}

TEST(OpSignatures, ReadsDefaultsOfEveryKind) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<OpDef> ops,
      ParseOpSignature(
          "Thing",
          "() stateful | s: string {A, B} = A; t: string = \"a b\\t\";\n"
          "  i: int = -3; f: float = 1e-05; b: bool = true; ty: {index} =\n"
          "  int32; l: list(int) = [1, 2]; e: list(shape) = []; u: shape = ?;\n"
          "  sh: shape = [2, ?]; te: tensor = uint8[7, 0]; n: func"));
  ASSERT_THAT(ops, SizeIs(1));
  EXPECT_TRUE(ops[0].is_stateful());
  const auto value = [&](absl::string_view name) {
    return FindAttrDef(ops[0], name)->default_value();
  };
  EXPECT_EQ(value("s").s(), "A");
  EXPECT_EQ(value("t").s(), "a b\t");
  EXPECT_EQ(value("i").i(), -3);
  EXPECT_FLOAT_EQ(value("f").f(), 1e-5f);
  EXPECT_TRUE(value("b").b());
  EXPECT_EQ(value("ty").type(), tensorflow::DT_INT32);
  EXPECT_THAT(value("l").list().i(), ElementsAre(1, 2));
  EXPECT_TRUE(value("e").has_list());
  EXPECT_TRUE(value("u").shape().unknown_rank());
  EXPECT_EQ(value("sh").shape().dim(1).size(), -1);
  EXPECT_EQ(value("te").tensor().tensor_shape().dim(0).size(), 2);
  EXPECT_FALSE(FindAttrDef(ops[0], "n")->has_default_value());
  EXPECT_THAT(FindAttrDef(ops[0], "ty")->allowed_values().list().type(),
              ElementsAre(tensorflow::DT_INT32, tensorflow::DT_INT64));
}

TEST(OpSignatures, SeveralNamesShareOneSignature) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::vector<OpDef> ops,
      ParseOpSignature("A, B,\n  C", "(x: float) -> (y: float)"));
  ASSERT_THAT(ops, SizeIs(3));
  EXPECT_EQ(ops[2].name(), "C");
  EXPECT_EQ(ops[2].input_arg_size(), 1);
}

TEST(OpSignatures, SaysWhatIsWrong) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"(x)", "':'"},
      {"(x: T)", "'T' is no type"},
      {"(x: N*float)", "'N' is no int attribute"},
      {"(x: float", "')'"},
      {"() | i: int = x", "a default of kind int"},
      {"() | i: integer", "a kind of attribute"},
      {"() | T: {indexes}", "a type or a set of types"},
      {"() statefull", "a known flag"},
      {"() | s: string = \"x", "a closing quote"},
      {"() | b: bool = true extra", "the end of the entry"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(
        ParseOpSignature("A", c.text),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.text;
  }
}

}  // namespace
}  // namespace optfarm::graph
