// Graphs as TensorFlow Lite models: what prepares them for the writer, whose
// own tests are in tests/engine/formats/tflite.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/export/export_model.h"
#include "engine/graph/infer_io.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::exporting {
namespace {

using optfarm::testing::FloatT;
using optfarm::testing::GraphBuilder;
using optfarm::testing::StatusIs;
using ::testing::HasSubstr;

absl::StatusOr<std::string> Export(const GraphBuilder& b) {
  const graph::Graph graph = b.Build();
  const auto io = graph::InferIo(graph);
  if (!io.ok()) return io.status();
  ExportOptions options;
  options.format = ModelFormat::kTflite;
  return ExportModel(graph, *io, options);
}

TEST(TfliteExportTest, TheNameOfTheFileSaysIt) {
  const auto format = FormatOfPath("models/net.tflite");
  ASSERT_THAT(format, optfarm::testing::IsOk());
  EXPECT_EQ(*format, ModelFormat::kTflite);
  EXPECT_EQ(FormatName(*format), "tflite");
}

TEST(TfliteExportTest, ComputesConstantsBeforehand) {
  GraphBuilder b;
  b.Placeholder("x", {1, 2});
  b.Floats("a", {2, 2}, {1, 2, 3, 4});
  // No operator of TensorFlow Lite does this.
  b.Node("inverse", "MatrixInverse", {"a"}, FloatT());
  b.Node("out", "MatMul", {"x", "inverse"}, FloatT());
  const auto bytes = Export(b);
  ASSERT_THAT(bytes, optfarm::testing::IsOk());
  EXPECT_EQ(bytes->substr(4, 4), "TFL3");
}

TEST(TfliteExportTest, SaysWhatCannotBeWritten) {
  GraphBuilder b;
  b.Placeholder("x", {2, 2});
  b.Node("out", "MatrixInverse", {"x"}, FloatT());
  EXPECT_THAT(Export(b), StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("node 'out' (MatrixInverse): ")));
}

}  // namespace
}  // namespace optfarm::exporting
