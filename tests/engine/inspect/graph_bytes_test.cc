#include "engine/inspect/graph_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/graph_builder.h"

namespace optfarm::inspect {
namespace {

using ::optfarm::testing::FloatT;
using ::optfarm::testing::GraphBuilder;

tensorflow::GraphDef Net() {
  GraphBuilder b;
  b.Placeholder("x", {300});
  b.Floats("weights", {300}, std::vector<float>(300, 1.5f));
  b.Node("a", "Mul", {"x", "weights"}, FloatT());
  b.Node("long_name", "Mul", {"a", "weights"}, FloatT());
  return b.Build().ToDef();
}

TEST(GraphBytesTest, AddsUpToTheFile) {
  const tensorflow::GraphDef graph = Net();
  const std::vector<OpBytes> rows = CountGraphBytes(graph);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3].op, "all");
  EXPECT_EQ(rows[3].all, static_cast<int64_t>(graph.ByteSizeLong()));
  EXPECT_EQ(rows[3].nodes, 4);
  const int64_t sum = rows[0].all + rows[1].all + rows[2].all;
  EXPECT_LE(sum, rows[3].all);
  EXPECT_GE(sum, rows[3].all - 16);
  EXPECT_EQ(rows[3].other(),
            rows[3].all - rows[3].values - rows[3].names - rows[3].inputs);
  EXPECT_GT(rows[0].other(), 0);
}

TEST(GraphBytesTest, TellsNamesInputsAndValuesApart) {
  const std::vector<OpBytes> rows = CountGraphBytes(Net());
  EXPECT_EQ(rows[0].op, "Const");
  // 300 floats, and where they stand.
  EXPECT_GE(rows[0].values, 1200);
  EXPECT_LE(rows[0].values, 1204);
  EXPECT_EQ(rows[1].op, "Mul");
  EXPECT_EQ(rows[1].nodes, 2);
  EXPECT_EQ(rows[1].names, 10);
  // "x", "weights", "a" and "weights", each with a tag and a length.
  EXPECT_EQ(rows[1].inputs, 16 + 8);
}

}  // namespace
}  // namespace optfarm::inspect
