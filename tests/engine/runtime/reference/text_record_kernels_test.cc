// Records of text to columns, tensors to text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/status_macros.h"
#include "engine/runtime/reference/catalog.h"
#include "tests/engine/runtime/graph_maker.h"
#include "tests/engine/runtime/run_op.h"
#include "tests/support/status_matchers.h"

namespace optfarm::runtime {
namespace {

using ::optfarm::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Tensor Texts(const std::vector<std::string>& values) {
  return Tensor::FromValues<std::string>({static_cast<int64_t>(values.size())},
                                         values);
}

tensorflow::NodeDef CsvNode(const std::vector<DataType>& types) {
  tensorflow::NodeDef node;
  node.set_name("csv");
  node.set_op("DecodeCSV");
  auto* list = (*node.mutable_attr())["OUT_TYPE"].mutable_list();
  for (const DataType type : types) list->add_type(type);
  return node;
}

// A text, a number with default 5, a number that has to be there.
absl::StatusOr<std::vector<Tensor>> Decode(
    const std::vector<std::string>& records, const char* delimiter = ",",
    bool has_quotes = true) {
  tensorflow::NodeDef node = CsvNode(
      {tensorflow::DT_STRING, tensorflow::DT_INT32, tensorflow::DT_FLOAT});
  graph::SetString(&node, "field_delim", delimiter);
  graph::SetBool(&node, "use_quote_delim", has_quotes);
  graph::SetString(&node, "na_value", "NA");
  const std::vector<Tensor> inputs = {Texts(records), Texts({"none"}),
                                      Ints({1}, {5}), Floats({0}, {})};
  return EvaluateNode(node, inputs, 3);
}

TEST(DecodeCsvTest, ReadsColumnsWithDefaults) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const auto columns, Decode({"a,1,2.5", ",,3", "NA,NA,-4e1", "b,7,1"}));
  EXPECT_THAT(ValuesOf<std::string>(columns[0]),
              ElementsAre("a", "none", "none", "b"));
  EXPECT_THAT(ValuesOf<int32_t>(columns[1]), ElementsAre(1, 5, 5, 7));
  EXPECT_THAT(ValuesOf<float>(columns[2]), ElementsAre(2.5f, 3, -40, 1));
}

TEST(DecodeCsvTest, ReadsQuotes) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto columns,
                               Decode({"\"a;\"\"b\"\"\n\";\"2\";3"}, ";"));
  EXPECT_THAT(ValuesOf<std::string>(columns[0]), ElementsAre("a;\"b\"\n"));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto plain,
                               Decode({"\"a\",2,3"}, ",", false));
  EXPECT_THAT(ValuesOf<std::string>(plain[0]), ElementsAre("\"a\""));
  for (const char* record :
       {"\"a,1,2", "\"a\"b,1,2", "a\"b,1,2", "a,1,2\r\n"}) {
    EXPECT_THAT(Decode({record}), StatusIs(kInvalid, ::testing::_)) << record;
  }
}

TEST(DecodeCsvTest, SaysWhatIsWrongWithARecord) {
  EXPECT_THAT(Decode({"a,1,2", "a,1"}),
              StatusIs(kInvalid, HasSubstr("2 of 3 fields")));
  EXPECT_THAT(Decode({"a,1,2,3"}),
              StatusIs(kInvalid, HasSubstr("more than 3")));
  EXPECT_THAT(Decode({"a,1,"}), StatusIs(kInvalid, HasSubstr("required")));
  EXPECT_THAT(Decode({"a,x,2"}), StatusIs(kInvalid, HasSubstr("'x' is not")));
  EXPECT_THAT(Decode({""}), StatusIs(kInvalid, HasSubstr("0 of 3")));
}

TEST(DecodeCsvTest, ReadsChosenColumnsAlone) {
  tensorflow::NodeDef node =
      CsvNode({tensorflow::DT_INT64, tensorflow::DT_DOUBLE});
  auto* list = (*node.mutable_attr())["select_cols"].mutable_list();
  for (int64_t column : {1, 3}) list->add_i(column);
  const std::vector<Tensor> inputs = {Texts({"a,1,b,2,c", "a,3,b,"}),
                                      Tensor::FromValues<int64_t>({0}, {}),
                                      Tensor::Scalar<double>(0.5)};
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto columns,
                               EvaluateNode(node, inputs, 2));
  EXPECT_THAT(ValuesOf<int64_t>(columns[0]), ElementsAre(1, 3));
  EXPECT_THAT(ValuesOf<double>(columns[1]), ElementsAre(2, 0.5));
  list->set_i(1, 1);
  EXPECT_THAT(EvaluateNode(node, inputs, 2),
              StatusIs(kInvalid, HasSubstr("ascending")));
}

absl::StatusOr<std::string> Format(const std::string& form,
                                   const std::vector<Tensor>& inputs,
                                   int64_t summarize = 3) {
  Op op("StringFormat");
  op.Text("template", form).Text("placeholder", "{}");
  op.Int("summarize", summarize);
  for (const Tensor& input : inputs) op.In(input);
  OPTFARM_ASSIGN_OR_RETURN(const Tensor text, op.Run());
  return *text.data<std::string>();
}

TEST(StringFormatTest, PutsTensorsIntoText) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const std::string text,
      Format("x = {}, y = {}!", {Float(1.5f), Texts({"a", "b"})}));
  EXPECT_EQ(text, "x = 1.5, y = [\"a\" \"b\"]!");
  EXPECT_THAT(Format("{} {}", {Float(1)}),
              StatusIs(kInvalid, HasSubstr("2 placeholders for 1 inputs")));
}

TEST(StringFormatTest, ShowsBothEndsOfEveryDimension) {
  OPTFARM_ASSERT_OK_AND_ASSIGN(std::string text,
                               Format("{}", {Counted({3, 5})}, 1));
  EXPECT_EQ(text, "[[0 ... 4]\n ...\n [10 ... 14]]");
  OPTFARM_ASSERT_OK_AND_ASSIGN(text, Format("{}", {Counted({2, 2})}, -1));
  EXPECT_EQ(text, "[[0 1]\n [2 3]]");
}

TEST(StringFormatTest, IsPrinted) {
  GraphMaker g;
  g.Placeholder("x", tensorflow::DT_STRING);
  g.Node("print", "PrintV2", {"x"});
  std::vector<std::string> lines;
  SessionOptions options;
  options.print = [&](absl::string_view line) { lines.emplace_back(line); };
  OPTFARM_ASSERT_OK_AND_ASSIGN(const auto session,
                               g.Session("x", "^print", options));
  OPTFARM_ASSERT_OK(session->Run({Tensor::Scalar<std::string>("[1 2]")}));
  EXPECT_THAT(lines, ElementsAre("[1 2]"));
}

}  // namespace
}  // namespace optfarm::runtime
