#include "client_cli/tables/graph_bytes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/graph_builder.h"

namespace optfarm::client_cli {
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
  const auto rows = nlohmann::json::parse(GraphBytes(graph).ToJson());
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[3]["op"], "all");
  EXPECT_EQ(rows[3]["bytes"], graph.SerializeAsString().size());
  EXPECT_EQ(rows[3]["nodes"], 4);
  int64_t sum = 0;
  for (int i = 0; i < 3; ++i) sum += rows[i]["bytes"].get<int64_t>();
  EXPECT_LE(sum, rows[3]["bytes"]);
  EXPECT_GE(sum, rows[3]["bytes"].get<int64_t>() - 16);
  for (const auto& row : rows) {
    EXPECT_EQ(row["value_bytes"].get<int64_t>() +
                  row["name_bytes"].get<int64_t>() +
                  row["input_bytes"].get<int64_t>() +
                  row["other_bytes"].get<int64_t>(),
              row["bytes"].get<int64_t>());
  }
}

TEST(GraphBytesTest, TellsNamesInputsAndValuesApart) {
  const auto rows = nlohmann::json::parse(GraphBytes(Net()).ToJson());
  EXPECT_EQ(rows[0]["op"], "Const");
  // 300 floats, and where they stand.
  EXPECT_GE(rows[0]["value_bytes"], 1200);
  EXPECT_LE(rows[0]["value_bytes"], 1204);
  EXPECT_EQ(rows[1]["op"], "Mul");
  EXPECT_EQ(rows[1]["nodes"], 2);
  EXPECT_EQ(rows[1]["name_bytes"], 10);
  // "x", "weights", "a" and "weights", each with a tag and a length.
  EXPECT_EQ(rows[1]["input_bytes"], 16 + 8);
}

}  // namespace
}  // namespace optfarm::client_cli
