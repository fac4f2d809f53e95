#include "engine/transforms/folding/shift_constants.h"

#include <limits>

#include "base/files.h"
#include "tests/engine/transforms/transform_testing.h"
#include "tests/support/test_data.h"

namespace optfarm::transforms::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// in + bias, twice.
Graph Biases() {
  GraphBuilder b;
  b.Placeholder("in", {3});
  b.Floats("a", {3}, {1, 2, 3});
  b.Floats("b", {3}, {10, 20, 30});
  b.Ints("shape", {1}, {3});
  b.Node("first", "Add", {"in", "a"}, FloatT());
  b.Node("out", "Add", {"first", "b"}, FloatT());
  return b.Build();
}

TEST(ParseConstantShiftsTest, ReadsALineForEachConstant) {
  EXPECT_THAT(
      ParseConstantShifts("layer/bias 1 -2.5e-3\n\n  b   0.5 \n").value(),
      ElementsAre(Pair("b", ElementsAre(0.5f)),
                  Pair("layer/bias", ElementsAre(1.0f, -2.5e-3f))));
  EXPECT_TRUE(ParseConstantShifts("").value().empty());
}

TEST(ParseConstantShiftsTest, ReadsBackWhatWasPrinted) {
  const ConstantShifts shifts = {
      {"a/b", {0.1f, -1.0f / 3.0f, 1.17549435e-38f, 1e-45f}},
      {"c", {std::numeric_limits<float>::max(), -0.0f, 16777217.0f}}};
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const ConstantShifts again,
      ParseConstantShifts(PrintConstantShifts(shifts)));
  EXPECT_EQ(again, shifts);
}

TEST(ParseConstantShiftsTest, NamesTheLineThatIsWrong) {
  EXPECT_THAT(ParseConstantShifts("a 1\nb\n"),
              StatusIs(kInvalid, AllOf(HasSubstr("line 2"), HasSubstr("'b'"))));
  EXPECT_THAT(
      ParseConstantShifts("a 1 x2\n"),
      StatusIs(kInvalid, AllOf(HasSubstr("line 1"), HasSubstr("'x2'"))));
  EXPECT_THAT(
      ParseConstantShifts("a 1\n\na 2\n"),
      StatusIs(kInvalid, AllOf(HasSubstr("line 3"), HasSubstr("twice"))));
}

TEST(ParseConstantShiftsTest, RefusesNumbersThatAreNotFinite) {
  for (const std::string number : {"nan", "inf", "-inf", "1e39"}) {
    EXPECT_THAT(ParseConstantShifts("a 1 " + number),
                StatusIs(kInvalid, AllOf(HasSubstr("line 1"),
                                         HasSubstr("'" + number + "'"))));
  }
}

TEST(ShiftConstantsTest, AddsToEachElement) {
  Graph graph = Biases();
  OPTFARM_ASSERT_OK(ShiftConstants({{"b", {1, -2, 0.5f}}}, &graph));
  EXPECT_THAT(FloatsOf(graph, "a"), ElementsAre(1, 2, 3));
  EXPECT_THAT(FloatsOf(graph, "b"), ElementsAre(11, 18, 30.5f));
}

TEST(ShiftConstantsTest, ChangesNothingWhenOneDoesNotFit) {
  const struct {
    std::string name;
    std::vector<float> shift;
    absl::StatusCode code;
    std::string message;
  } kBad[] = {
      {"bb", {1, 1, 1}, absl::StatusCode::kNotFound, "bb"},
      {"first", {1, 1, 1}, kInvalid, "'first' is a Add, not a Const"},
      {"b", {1, 1}, kInvalid, "'b' has 3 elements, 2 shifts"},
      {"shape", {1}, kInvalid, "shape"},
  };
  for (const auto& bad : kBad) {
    Graph graph = Biases();
    EXPECT_THAT(
        ShiftConstants({{"a", {1, 1, 1}}, {bad.name, bad.shift}}, &graph),
        StatusIs(bad.code, HasSubstr(bad.message)));
    EXPECT_THAT(FloatsOf(graph, "a"), ElementsAre(1, 2, 3)) << bad.name;
  }
}

TEST(ShiftConstantsTest, MovesCodesByWholeSteps) {
  const auto shifted = [](std::vector<float> shift) {
    Graph graph;
    Tensor quantized =
        *Tensor::Allocate(tensorflow::DT_QINT8, runtime::Shape({2}));
    quantized.data<int8_t>()[0] = 5;
    quantized.data<int8_t>()[1] = -127;
    graph.Add(MakeConst("codes", quantized), {});
    const absl::Status status =
        ShiftConstants({{"codes", std::move(shift)}}, &graph);
    if (!status.ok()) return absl::StatusOr<std::vector<int>>(status);
    const Tensor value = *ConstValue(graph.node(graph.Find("codes")));
    return absl::StatusOr<std::vector<int>>(
        {value.data<int8_t>()[0], value.data<int8_t>()[1]});
  };
  EXPECT_THAT(shifted({-1, 2}).value(), ElementsAre(4, -125));
  EXPECT_THAT(shifted({0, -1}).status(),
              StatusIs(kInvalid, HasSubstr("quantized value -127")));
  EXPECT_THAT(shifted({0.5f, 0}).status(),
              StatusIs(kInvalid, HasSubstr("whole number")));
}

TEST(ShiftConstantsTransformTest, ReadsItsFileFromTheJobsFolder) {
  const std::string folder = FreshFolder();
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(JoinPath(folder, "shifts"), "a 1 1 1\nb 0 0 -30\n"));
  Graph graph = Biases();
  PipelineOptions options;
  options.base_folder = folder;
  OPTFARM_ASSERT_OK_AND_ASSIGN(
      const PipelineReport report,
      Apply(&graph, "shift_constants(shift_file=shifts)", "in", "out",
            options));
  EXPECT_EQ(report.steps[0].report.nodes_changed, 2);
  EXPECT_THAT(FloatsOf(graph, "a"), ElementsAre(2, 3, 4));
  EXPECT_THAT(FloatsOf(graph, "b"), ElementsAre(10, 20, 0));
}

TEST(ShiftConstantsTransformTest, RefusesAFileOutsideOfTheJobsFolder) {
  PipelineOptions options;
  options.base_folder = FreshFolder();
  for (const std::string path : {"../shifts", "/etc/hostname"}) {
    Graph graph = Biases();
    EXPECT_THAT(Apply(&graph, "shift_constants(shift_file=\"" + path + "\")",
                      "in", "out", options),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr("'" + path + "'")));
  }
}

TEST(ShiftConstantsTransformTest, NamesTheFileThatIsWrong) {
  PipelineOptions options;
  options.base_folder = FreshFolder();
  OPTFARM_ASSERT_OK(
      WriteFileAtomically(JoinPath(options.base_folder, "shifts"), "a\n"));
  Graph graph = Biases();
  EXPECT_THAT(
      Apply(&graph, "shift_constants(shift_file=shifts)", "in", "out", options),
      StatusIs(kInvalid, AllOf(HasSubstr("shifts'"), HasSubstr("line 1"))));
  EXPECT_FALSE(
      Apply(&graph, "shift_constants(shift_file=missing)", "in", "out", options)
          .ok());
  EXPECT_THAT(Apply(&graph, "shift_constants", "in", "out", options),
              StatusIs(kInvalid, HasSubstr("shift_file")));
}

}  // namespace
}  // namespace optfarm::transforms::testing
