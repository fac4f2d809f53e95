#include "engine/optimize/judging/layer_alone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "engine/graph/graph.h"
#include "tests/engine/optimize/small_model.h"
#include "tests/support/status_matchers.h"

namespace optfarm::optimize {
namespace {

using ::optfarm::testing::StatusIs;
using testing::AddNode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(LayerAloneTest, ALayerHasTheNameOfWhatItComputes) {
  EXPECT_EQ(LayerOf("a/relu/eightbit"), "a/relu");
  EXPECT_EQ(LayerOf("a/relu/eightbit/scaled"), "a/relu");
  EXPECT_EQ(LayerOf("conv/normalized/eightbit"), "conv");
  EXPECT_EQ(LayerOf("conv/eightbit/requantize"), "");
  EXPECT_EQ(LayerOf("conv"), "");
}

// What reads scaled channels takes the factors back: neither means anything
// without the other.
TEST(LayerAloneTest, ScaledLayersStandWithTheirReaders) {
  tensorflow::GraphDef def;
  AddNode(&def, "x", "Placeholder", {});
  AddNode(&def, "a/eightbit/scaled", "QuantizedConv2D", {"x"});
  AddNode(&def, "pool/eightbit", "QuantizedMaxPool", {"a/eightbit/scaled"});
  AddNode(&def, "b/eightbit", "QuantizedDepthwiseConv2D", {"pool/eightbit"});
  AddNode(&def, "c/eightbit", "QuantizedConv2D", {"b/eightbit"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                               graph::Graph::FromDef(std::move(def)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const LayerSet set, FindLayerSet(graph));
  EXPECT_THAT(set.group_of, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(set.groups, ElementsAre(SizeIs(3), SizeIs(1)));
}

TEST(LayerAloneTest, RefusesALayerWhoseFloatTensorIsGone) {
  tensorflow::GraphDef float_def, def;
  AddNode(&float_def, "x", "Placeholder", {});
  AddNode(&def, "x", "Placeholder", {});
  AddNode(&def, "a/eightbit", "QuantizedRelu", {"x"});
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph floats,
                               graph::Graph::FromDef(std::move(float_def)));
  OPTFARM_ASSERT_OK_AND_ASSIGN(const graph::Graph result,
                               graph::Graph::FromDef(std::move(def)));
  const graph::NodeId group[] = {result.Find("a/eightbit")};
  EXPECT_THAT(PutAlone(floats, result, {}, group),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'a'")));
}

}  // namespace
}  // namespace optfarm::optimize
